//! `statement` and `page`: displayed between questions, without an answer.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::Texts;
use crate::domain::question::control::Control;
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::violation::Rule;

/// Rules of `statement` and `page`, which accept no answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DisplayOnly {
    pub(super) begins_page: bool,
}

impl Rules for DisplayOnly {
    fn check(&self, _: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        vec![AnswerError::new(Rule::NotAnswerable, texts.not_answerable)]
    }

    fn schema(&self) -> Value {
        false.into()
    }

    fn control(&self) -> Control<'_> {
        if self.begins_page { Control::Page } else { Control::Statement }
    }

    fn example(&self) -> Value {
        Value::Null
    }

    fn expects(&self, texts: &Texts) -> String {
        texts.expects_nothing.to_owned()
    }

    fn takes_answer(&self) -> bool {
        false
    }
}
