//! `labels`: what stands beside some of the values that can be chosen.

use crate::domain::fields::{Fields, control_character};
use crate::domain::json::Value;
use crate::domain::violation::{Rule, Violation, join};

/// Reports what is wrong with `labels`, an object from some of `values` to texts.
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
}
