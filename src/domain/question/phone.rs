//! `phone`: a possible phone number.

use std::borrow::Cow;

use phonelib::{ParseError, PhoneNumber, country_by_code};

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::question::control::{Control, LineKind};
use crate::domain::question::json::object;
use crate::domain::question::text::{Lines, check_line};
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

const SAMPLE: &str = "+49 30 901820";

/// Rules of `phone`: a number in international form, `+` first, or as dialled in the default country.
///
/// A number is possible if it has a known calling code and as many digits as numbers of that country. Whether it is in
/// use cannot be known, and new ranges are opened every week.
#[derive(Debug, Clone)]
pub(super) struct Phone {
    default_country: Option<String>,
}

impl Phone {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let default_country = fields.text("default_country", 40);
        if let Some(country) = &default_country
            && (country.len() != 2 || country_by_code(country).is_none())
        {
            let message = format!("`{country}` is not a country code like DE (ISO 3166-1 alpha-2)");
            fields.refuse("default_country", Rule::InvalidRange, message);
        }
        Self { default_country }
    }

    fn is_possible(&self, text: &str) -> bool {
        let number = dialled(text);
        let parsed = match &self.default_country {
            Some(country) => PhoneNumber::try_parse_with_country(&number, country),
            None if number.starts_with('+') => PhoneNumber::try_parse(&number),
            None => return false,
        };
        // For North America the crate knows the area codes in use; a new one is possible, too.
        matches!(parsed, Ok(_) | Err(ParseError::InvalidAreaCode | ParseError::InvalidExchange))
    }
}

/// Returns the number to dial: `text`, or the number of a `tel` URI (RFC 3966), prefixed with the country code of its
/// `phone-context`, if any.
fn dialled(text: &str) -> Cow<'_, str> {
    let Some((_, uri)) = text.split_once(':').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("tel")) else {
        return text.into();
    };
    let mut parts = uri.split(';');
    let number = parts.next().unwrap_or_default();
    let context = parts.find_map(|part| part.strip_prefix("phone-context="));
    format!("{}{number}", context.filter(|context| context.starts_with('+')).unwrap_or_default()).into()
}

impl Rules for Phone {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        check_line(answer, texts, |text| match self.is_possible(text) {
            true => Ok(()),
            false => Err(AnswerError::enter(Rule::InvalidPhone, &self.expects(texts), texts)),
        })
    }

    fn schema(&self) -> Value {
        object([("type", Some("string".into())), ("pattern", Some(Lines::One.expression().into()))])
    }

    fn control(&self) -> Control<'_> {
        LineKind::Phone.control()
    }

    fn example(&self) -> Value {
        SAMPLE.into()
    }

    fn expects(&self, texts: &Texts) -> String {
        match &self.default_country {
            Some(country) => fill(texts.expects_phone_of, &[("country", country), ("sample", &SAMPLE)]),
            None => fill(texts.expects_phone, &[("sample", &SAMPLE)]),
        }
    }
}
