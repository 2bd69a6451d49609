//! The parameters behind `?`: each known, each at most once, each with a value that fits.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::Shared;
use super::problem::Failure;
use crate::api::Code;
use crate::clock::Timestamp;
use crate::domain::condition::Wanted;

/// Items a page may have.
const MAX_LIMIT: usize = 1_000;

/// A request's query, with no parameter besides those of `T`.
pub(super) struct Parameters<T>(pub(super) T);

/// What can be read from a query.
pub(super) trait FromQuery: Sized {
    /// Takes all its parameters out of `query`; what is left is unknown.
    fn take(query: &mut Query) -> Result<Self, Failure>;
}

impl<T: FromQuery> FromRequestParts<Shared> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Failure> {
        let mut query = Query::read(parts.uri.query().unwrap_or_default())?;
        let parameters = T::take(&mut query)?;
        query.end()?;
        Ok(Self(parameters))
    }
}

/// No parameter at all.
pub(super) struct Nothing {}

impl FromQuery for Nothing {
    fn take(_: &mut Query) -> Result<Self, Failure> {
        Ok(Self {})
    }
}

/// A query that is being read.
pub(super) struct Query {
    /// Names and values, as far as nobody has asked for them.
    left: Vec<(String, String)>,
    /// Names that were asked for.
    known: Vec<&'static str>,
}

impl Query {
    fn read(text: &str) -> Result<Self, Failure> {
        // The parser would put another character in the place of what is no UTF-8.
        let is_broken = |pair: &&str| percent_decode_str(pair).decode_utf8().is_err();
        if let Some(broken) = text.split('&').find(is_broken) {
            let name = percent_decode_str(broken.split('=').next().unwrap_or_default()).decode_utf8_lossy();
            return Err(invalid(format!("`{}` is no UTF-8 once it is percent-decoded", short(&name))));
        }
        let left = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        Ok(Self { left, known: Vec::new() })
    }

    /// The value of `name`, if it is there.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Failure> {
        // Most requests have no query, and need not remember what it could have had.
        if self.left.is_empty() {
            return Ok(None);
        }
        self.known.push(name);
        let mut values = self.left.extract_if(.., |(written, _)| written == name).map(|(_, value)| value);
        let value = values.next();
        match values.next() {
            Some(_) => Err(twice(name)),
            None => Ok(value),
        }
    }

    /// Whether `name` is `true`; if it is not there, it is `false`.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, Failure> {
        match self.text(name)?.as_deref() {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(other) => Err(unfit(name, "`true` or `false`", other)),
        }
    }

    /// What the value of `name` stands for among `known`.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        let words = || known.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        found.map(Some).ok_or_else(|| unfit(name, &words(), &text))
    }

    /// A date and time.
    pub(super) fn moment(&mut self, name: &'static str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let expected = "a date and time with its offset, such as 2027-01-31T18:00:00Z";
        Timestamp::parse(&text).map(Some).ok_or_else(|| unfit(name, expected, &text))
    }

    /// The values of `filter[question][operator]`, and of `filter[question]`, which is `eq`.
    pub(super) fn filter(&mut self) -> Result<BTreeMap<Wanted, String>, Failure> {
        let mut filter = BTreeMap::new();
        if self.left.is_empty() {
            return Ok(filter);
        }
        self.known.push("filter[question][operator]");
        for (name, value) in self.left.extract_if(.., |(name, _)| name.starts_with("filter[")) {
            let wanted = wanted(&name).ok_or_else(|| {
                invalid(format!("`{}` is no filter; write `filter[question][operator]`", short(&name)))
            })?;
            if filter.insert(wanted, value).is_some() {
                return Err(twice(&name));
            }
        }
        Ok(filter)
    }

    /// How many items a page is to have: `limit`, or `default` if it is not there.
    pub(super) fn limit(&mut self, default: usize) -> Result<usize, Failure> {
        let Some(text) = self.text("limit")? else { return Ok(default) };
        let number = Some(&text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number =
            number.and_then(|text| text.parse().ok()).filter(|number| (1..=MAX_LIMIT).contains(number));
        number.ok_or_else(|| unfit("limit", &format!("a number from 1 to {MAX_LIMIT}"), &text))
    }

    /// Fails if a parameter is left.
    fn end(self) -> Result<(), Failure> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let there = match self.known.as_slice() {
            [] => "it takes none".to_owned(),
            known => format!("it takes `{}`", known.join("`, `")),
        };
        Err(invalid(format!("this operation takes no parameter `{}`; {there}", short(name))))
    }
}

/// What is wanted by a parameter called `name`.
fn wanted(name: &str) -> Option<Wanted> {
    let within = name.strip_prefix("filter[")?.strip_suffix(']')?;
    let (question, operator) = within.split_once("][").unwrap_or((within, "eq"));
    let is_name = |text: &str| !text.is_empty() && !text.contains(['[', ']']);
    let wanted = Wanted { question: question.to_owned(), operator: operator.to_owned() };
    (is_name(question) && is_name(operator)).then_some(wanted)
}

fn twice(name: &str) -> Failure {
    invalid(format!("`{}` stands twice; send it once", short(name)))
}

fn unfit(name: &str, expected: &str, value: &str) -> Failure {
    invalid(format!("`{name}` expects {expected}, got `{}`", short(value)))
}

fn invalid(detail: String) -> Failure {
    Failure::because(Code::InvalidQuery, detail)
}

/// Enough of `text` to know it again.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
