//! `hidden`: a value sent with the answers but not entered, for instance from the URL of a page.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{ENGLISH, Texts};
use crate::domain::question::control::Control;
use crate::domain::question::json::{any_of, object};
use crate::domain::question::text::{Lines, one_line};
use crate::domain::question::{AnswerError, Rules, is_empty};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Maximum characters of a default: it is stored with every submission.
const MAX_DEFAULT: usize = 1_000;

/// Rules of `hidden`: a text, a number or a boolean.
#[derive(Debug, Clone, Default)]
pub(super) struct Hidden {
    default: Option<Value>,
    /// The parameter of a page's address that the value is taken from.
    from_url: Option<String>,
}

impl Hidden {
    pub(super) fn read(fields: &mut Fields<'_, '_>, budget: &mut Budget) -> Self {
        let default = fields.value("default").cloned();
        if default.as_ref().and_then(Value::as_str).is_some_and(|text| text.chars().count() > MAX_DEFAULT) {
            let message = format!("`default` must have at most {MAX_DEFAULT} characters");
            fields.refuse("default", Rule::TooLong, message);
        }
        let error = default.as_ref().and_then(|value| match is_empty(value) {
            true => Some(AnswerError::new(Rule::Empty, "`default` must not be empty")),
            false => check(value, ENGLISH).err(),
        });
        if let Some(AnswerError { rule, message, .. }) = error {
            fields.refuse("default", rule, message);
        }
        if let Some(value) = &default
            && let Err(Some((rule, message))) = budget.count_default(value.to_string().len())
        {
            let help = "defaults are stored with every submission: shorten this one or an earlier one";
            fields.refuse("default", rule, message).help = Some(help.to_owned());
        }
        let from_url = fields.text("from_url", 300);
        Self { default, from_url }
    }
}

fn check(value: &Value, texts: &Texts) -> Result<(), AnswerError> {
    match value {
        Value::Number(_) | Value::Bool(_) => Ok(()),
        Value::String(_) => one_line(value, texts).map(|_text| ()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(AnswerError::wrong_type(texts.expects_hidden, value, texts))
        }
    }
}

impl Rules for Hidden {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        check(answer, texts).err().into_iter().collect()
    }

    fn schema(&self) -> Value {
        let text =
            object([("type", Some("string".into())), ("pattern", Some(Lines::One.expression().into()))]);
        let of_type = |name: &str| object([("type", Some(name.into()))]);
        any_of([text, of_type("number"), of_type("boolean")])
    }

    fn control(&self) -> Control<'_> {
        Control::Hidden { from_url: self.from_url.as_deref() }
    }

    fn example(&self) -> Value {
        Value::String("web".to_owned())
    }

    fn expects(&self, texts: &Texts) -> String {
        texts.expects_hidden.to_owned()
    }

    fn is_untyped(&self) -> bool {
        true
    }

    fn is_shown(&self) -> bool {
        false
    }

    fn default_answer(&self) -> Option<&Value> {
        self.default.as_ref()
    }
}
