//! `labels`: what stands beside some of the values that can be chosen.

use crate::domain::fields::{Fields, control_character};
use crate::domain::json::{Object, Value};
use crate::domain::violation::{Rule, Violation, join};

/// Reads `labels`, an object from some of `values` to texts.
pub(super) fn read(fields: &mut Fields<'_, '_>, values: &[String]) -> Option<Object> {
    let value = fields.value("labels")?;
    let Value::Object(labels) = value else {
        let message = format!(
            "`labels` must be an object such as {{\"{}\": \"Poor\"}}, not {}",
            values[0],
            value.kind()
        );
        fields.refuse("labels", Rule::TypeMismatch, message);
        return None;
    };
    for (key, label) in labels {
        let pointer = join(&fields.at("labels"), key);
        let fault = if !values.contains(key) {
            let known = values.join(", ");
            Some((Rule::InvalidRange, format!("`{key}` cannot be labelled; what can is {known}")))
        } else if let Value::String(text) = label {
            fields.violations().extend(control_character(text, &pointer));
            None
        } else {
            Some((Rule::TypeMismatch, format!("the label of {key} must be text, not {}", label.kind())))
        };
        if let Some((rule, message)) = fault {
            fields.report(Violation::new(pointer, rule, message));
        }
    }
    Some(labels.clone())
}
