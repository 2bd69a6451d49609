//! JSON values as text for people.

use crate::domain::json::Value;
use indicatif::HumanBytes;

/// Formats `value`: `red, "dark blue"` for a list, `red, blue "Dark blue"` for options with labels, `1 = bad, 5 = good`
/// for the labels of a scale.
pub fn humanize(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(humanize_item).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let member = |(name, value): &(String, Value)| format!("{name} = {}", humanize(value));
            members.iter().map(member).collect::<Vec<_>>().join(", ")
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

/// Formats a size, such as `12.3 MiB`.
pub fn bytes(count: u64) -> String {
    HumanBytes(count).to_string()
}

/// Formats a number with digits in groups of three: `1 204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(" ")
}
