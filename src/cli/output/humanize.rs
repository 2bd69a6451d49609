//! JSON values as text for people.

use crate::cli::output::render_error::grouped;
use crate::domain::json::Value;

/// Formats `value`: `red, "dark blue"` for a list, `red, blue "Dark blue"` for options with labels, `1 = bad, 5 = good`
/// for the labels of a scale.
pub fn humanize(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => joined(items.iter().map(humanize_item).collect()),
        Value::Object(members) => {
            joined(members.iter().map(|(name, value)| format!("{name} = {}", humanize(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Formats one item of a list.
pub fn humanize_item(value: &Value) -> String {
    match (value.get("value"), value.get("label")) {
        (Some(value), Some(label)) => format!("{} {label}", value.display_text()),
        _ if matches!(value, Value::String(_)) => value.display_text(),
        _ => humanize(value),
    }
}

/// Formats a count with its noun, whose plural ends in `s`: `1 problem`, `1 204 problems`.
pub fn count_noun(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count => format!("{} {noun}s", grouped(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::{count_noun, humanize};
    use crate::domain::json::parse;

    #[test]
    fn a_value_is_said_without_the_marks_of_json() {
        for (json, expected) in [
            ("1.10", "1.10"),
            ("true", "true"),
            (r#""a, b""#, "a, b"),
            (r#"["late","a, b","dark blue",2]"#, r#"late, "a, b", "dark blue", 2"#),
            (r#"["red",{"value":"blue","label":"Dark blue"}]"#, r#"red, blue "Dark blue""#),
            (r#"{"1":"bad","5":"good"}"#, "1 = bad, 5 = good"),
            (r#"[{"other":"purple"}]"#, "other = purple"),
            ("[]", ""),
        ] {
            assert_eq!(humanize(&parse(json).unwrap()), expected);
        }
    }

    #[test]
    fn one_of_a_thing_is_singular() {
        let texts = [0_usize, 1, 2, 1204].map(|count| count_noun(count, "problem"));
        assert_eq!(texts, ["0 problems", "1 problem", "2 problems", "1 204 problems"]);
    }
}
