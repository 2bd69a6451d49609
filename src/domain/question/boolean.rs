//! `boolean` and `consent`: yes or no, and agreement.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::question::json::object;
use crate::domain::question::typed_text::yes_or_no;
use crate::domain::question::{AnswerError, MAX_DESCRIPTION, Rules, is_empty, labels};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Rules of `boolean`: true or false, which may have labels.
#[derive(Debug, Clone)]
pub(super) struct Boolean;

impl Boolean {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        labels::check(fields, &["true".to_owned(), "false".to_owned()]);
        Self
    }
}

impl Rules for Boolean {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<AnswerError> {
        match answer {
            Value::Bool(_) => Vec::new(),
            other => vec![AnswerError::wrong_type(&self.expects(), other)],
        }
    }

    fn schema(&self) -> Value {
        object([("type", Some("boolean".into()))])
    }

    fn example(&self) -> Value {
        true.into()
    }

    fn parse_text(&self, text: &str) -> Value {
        yes_or_no(text)
    }

    fn expects(&self) -> String {
        "true or false".to_owned()
    }
}

/// Rules of `consent`: agreement to a text. `false` counts as no answer.
#[derive(Debug, Clone)]
pub(super) struct Consent;

impl Consent {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        fields.text("text", MAX_DESCRIPTION);
        Self
    }
}

impl Rules for Consent {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<AnswerError> {
        match answer {
            Value::Bool(true) => Vec::new(),
            _ => vec![AnswerError::new(Rule::TypeMismatch, format!("Enter {}", self.expects()))],
        }
    }

    fn is_empty(&self, answer: &Value) -> bool {
        *answer == Value::Bool(false) || is_empty(answer)
    }

    fn schema(&self) -> Value {
        object([("type", Some("boolean".into()))])
    }

    fn example(&self) -> Value {
        true.into()
    }

    fn parse_text(&self, text: &str) -> Value {
        yes_or_no(text)
    }

    fn expects(&self) -> String {
        "true to agree".to_owned()
    }
}
