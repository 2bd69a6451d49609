//! Metadata of a submission: names and texts that its sender stores with the answers.

use crate::domain::json::Value;
use crate::domain::validation::fields::control_character;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation, join};

pub const MAX_METADATA: usize = 20;

/// Checks `value`, the member `metadata` of a submission: a flat object of at most [`MAX_METADATA`] texts.
///
/// Names and texts are each limited to the size of an answer, without control characters except tab and line breaks.
pub fn check(value: &Value, limits: &Limits, violations: &mut Vec<Violation>) {
    let Value::Object(members) = value else {
        violations.push(Violation::wrong_type("/metadata", "metadata", "an object", value));
        return;
    };
    if members.len() > MAX_METADATA {
        let message = format!("`metadata` has {} members, {MAX_METADATA} are allowed", members.len());
        violations.push(Violation::new("/metadata", Rule::TooMany, message));
    }
    for (key, value) in members {
        if violations.len() > MAX_VIOLATIONS {
            return;
        }
        let longest = match value {
            Value::String(text) => {
                let pointer = join("/metadata", key);
                let control =
                    [key, text].into_iter().find_map(|text| control_character("metadata", text, &pointer));
                violations.extend(control);
                text.len().max(key.len())
            }
            other => {
                let message = format!("metadata must be text, not {}", other.kind());
                violations.push(Violation::new(join("/metadata", key), Rule::TypeMismatch, message));
                continue;
            }
        };
        if longest > limits.answer {
            let message = format!("{longest} bytes are too many, {} are allowed", limits.answer);
            violations.push(Violation::new(join("/metadata", key), Rule::TooLong, message));
        }
    }
}
