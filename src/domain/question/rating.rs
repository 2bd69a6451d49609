//! `rating`: a whole number from 1 to `max`.

use super::{Fault, Rules};
use crate::domain::fields::Fields;
use crate::domain::json::{Object, Value};
use crate::domain::violation::{Rule, Violation, join};

/// A whole number from 1 to `max`.
#[derive(Debug, Clone, Default)]
pub struct Rating {
    max: Option<i64>,
    labels: Option<Object>,
}

impl Rating {
    /// The highest rating where the author set none.
    const MAX: i64 = 5;

    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let max = fields.integer("max", 2..=10);
        let labels = read_labels(fields, 1, max.unwrap_or(Self::MAX));
        Self { max, labels }
    }

    fn max(&self) -> i64 {
        self.max.unwrap_or(Self::MAX)
    }
}

/// Reads `labels`: an object from numbers between `min` and `max`, as text, to texts.
fn read_labels(fields: &mut Fields<'_, '_>, min: i64, max: i64) -> Option<Object> {
    let value = fields.value("labels")?;
    let Value::Object(labels) = value else {
        let message =
            format!("`labels` must be an object such as {{\"{min}\": \"Poor\"}}, not {}", value.kind());
        fields.refuse("labels", Rule::TypeMismatch, message);
        return None;
    };
    for (key, label) in labels {
        let pointer = join(&fields.at("labels"), key);
        let fault = if !(min..=max).any(|number| number.to_string() == *key) {
            Some((Rule::InvalidRange, format!("`{key}` is no number from {min} to {max}")))
        } else if !matches!(label, Value::String(_)) {
            Some((Rule::TypeMismatch, format!("the label of {key} must be text, not {}", label.kind())))
        } else {
            None
        };
        if let Some((rule, message)) = fault {
            fields.report(Violation::new(pointer, rule, message));
        }
    }
    Some(labels.clone())
}

impl Rules for Rating {
    fn check(&self, answer: &Value) -> Vec<Fault> {
        let Value::Number(number) = answer else {
            let message = format!("Enter {}, not {}", self.expects(), answer.kind());
            return vec![Fault::new(Rule::TypeMismatch, message)];
        };
        let max = self.max();
        match number.integer() {
            Some(integer) if (1..=max).contains(&integer) => Vec::new(),
            None if (0.0..=max as f64 + 1.0).contains(&number.value()) => {
                vec![Fault::new(Rule::NotAnInteger, format!("Enter {}", self.expects()))]
            }
            Some(_) | None => vec![Fault::new(Rule::OutOfRange, format!("Enter {}", self.expects()))],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let max = self.max.map(|max| ("max", Value::Number(max.into())));
        let labels = self.labels.clone().map(|labels| ("labels", Value::Object(labels)));
        max.into_iter().chain(labels).collect()
    }

    fn example(&self) -> Value {
        Value::Number(1.into())
    }

    fn expects(&self) -> String {
        format!("a whole number from 1 to {}", self.max())
    }
    fn range(&self) -> Option<(f64, f64)> {
        Some((1.0, self.max() as f64))
    }
}
