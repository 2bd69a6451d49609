//! `statement` and `page`: shown between questions, and not asked.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::question::{Fault, Rules};
use crate::domain::validation::violation::Rule;

/// A text to read, or the beginning of a page. Takes no answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Silent;

impl Rules for Silent {
    fn check(&self, _: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        vec![Fault::new(Rule::NotAnswerable, "This is not asked and takes no answer")]
    }

    fn schema(&self) -> Value {
        false.into()
    }

    fn example(&self) -> Value {
        Value::Null
    }

    fn expects(&self) -> String {
        "no answer".to_owned()
    }

    fn takes_answer(&self) -> bool {
        false
    }
}
