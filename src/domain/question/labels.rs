//! `labels`: texts displayed beside values.

use crate::domain::json::Value;
use crate::domain::validation::fields::{Fields, control_character, quoted};
use crate::domain::validation::violation::{Rule, Violation, join, shortened};

/// Checks `labels`, an object from some of `values` to texts.
pub(super) fn check(fields: &mut Fields<'_, '_>, values: &[String]) {
    let Some(value) = fields.value("labels") else { return };
    let Value::Object(labels) = value else {
        let message = format!(
            "`labels` must be an object such as {{\"{}\": \"Poor\"}}, not {}",
            values[0],
            value.kind()
        );
        fields.refuse("labels", Rule::TypeMismatch, message);
        return;
    };
    for (key, label) in labels {
        let pointer = join(&fields.pointer_to("labels"), key);
        if !values.contains(key) {
            let message = format!("`{}` cannot be labelled", shortened(key));
            let violation = Violation::new(pointer, Rule::InvalidRange, message);
            fields.violations.push(violation.allowed(key, values.iter().map(String::as_str)));
        } else if let Value::String(text) = label {
            fields.violations.extend(control_character(&format!("the label of {key}"), text, &pointer));
        } else {
            let message = format!("the label of {key} must be text, not {}", label.kind());
            fields.violations.push(Violation {
                help: quoted(label),
                ..Violation::new(pointer, Rule::TypeMismatch, message)
            });
        }
    }
}
