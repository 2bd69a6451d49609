//! `boolean` and `consent`: yes or no, and agreement.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::Texts;
use crate::domain::question::control::Control;
use crate::domain::question::json::object;
use crate::domain::question::labels::{self, Labels};
use crate::domain::question::{AnswerError, MAX_DESCRIPTION, Rules, is_empty};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Rules of `boolean`, whose values may have labels, and of `consent`, where `false` counts as no answer.
#[derive(Debug, Clone)]
pub(super) struct Boolean {
    is_consent: bool,
    labels: Labels,
    /// The statement that a respondent agrees to, in Markdown.
    text: Option<String>,
}

impl Boolean {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let labels = labels::read(fields, &["true".to_owned(), "false".to_owned()]);
        Self { is_consent: false, labels, text: None }
    }

    pub(super) fn read_consent(fields: &mut Fields<'_, '_>) -> Self {
        let text = fields.text("text", MAX_DESCRIPTION);
        Self { is_consent: true, labels: Labels::default(), text }
    }
}

impl Rules for Boolean {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        match answer {
            Value::Bool(true) => Vec::new(),
            _ if self.is_consent => {
                vec![AnswerError::enter(Rule::TypeMismatch, texts.expects_consent, texts)]
            }
            Value::Bool(false) => Vec::new(),
            other => vec![AnswerError::wrong_type(texts.expects_boolean, other, texts)],
        }
    }

    fn is_empty(&self, answer: &Value) -> bool {
        is_empty(answer) || self.is_consent && *answer == Value::Bool(false)
    }

    fn schema(&self) -> Value {
        object([("type", Some("boolean".into()))])
    }

    fn example(&self) -> Value {
        true.into()
    }

    fn control(&self) -> Control<'_> {
        match self.is_consent {
            true => Control::Consent(self.text.as_deref()),
            false => Control::YesNo(&self.labels),
        }
    }

    fn parse_text(&self, text: &str) -> Value {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => true.into(),
            "false" | "no" => false.into(),
            _ => text.into(),
        }
    }

    fn expects(&self, texts: &Texts) -> String {
        if self.is_consent { texts.expects_consent } else { texts.expects_boolean }.to_owned()
    }
}
