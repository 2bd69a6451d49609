//! `labels`: texts displayed beside values.

use crate::domain::json::Value;
use crate::domain::validation::fields::{Fields, control_character, quoted};
use crate::domain::validation::violation::{Rule, Violation, join, shortened};

/// Labels of some values, in the order written.
#[derive(Debug, Clone, Default)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// Returns the label of `value`, if it has one.
    pub fn of(&self, value: &str) -> Option<&str> {
        self.0.iter().find(|(labelled, _)| labelled == value).map(|(_, label)| label.as_str())
    }
}

/// Parses `labels`, an object from some of `values` to texts.
pub(super) fn read(fields: &mut Fields<'_, '_>, values: &[String]) -> Labels {
    let mut read = Labels::default();
    let Some(value) = fields.value("labels") else { return read };
    let Value::Object(labels) = value else {
        let message = format!(
            "`labels` must be an object such as {{\"{}\": \"Poor\"}}, not {}",
            values[0],
            value.kind()
        );
        fields.refuse("labels", Rule::TypeMismatch, message);
        return read;
    };
    for (key, label) in labels {
        let pointer = join(&fields.pointer_to("labels"), key);
        if !values.contains(key) {
            let message = format!("`{}` cannot be labelled", shortened(key));
            let violation = Violation::new(pointer, Rule::InvalidRange, message);
            fields.violations.push(violation.allowed(key, values.iter().map(String::as_str)));
        } else if let Value::String(text) = label {
            fields.violations.extend(control_character(&format!("the label of {key}"), text, &pointer));
            read.0.push((key.clone(), text.clone()));
        } else {
            let message = format!("the label of {key} must be text, not {}", label.kind());
            fields.violations.push(Violation {
                help: quoted(label),
                ..Violation::new(pointer, Rule::TypeMismatch, message)
            });
        }
    }
    read
}
