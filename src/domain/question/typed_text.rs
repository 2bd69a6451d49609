//! Conversion of typed text to an answer, on a command line or in a query.

use crate::domain::json::{self, Value};

/// Parses `text` as JSON if the value is `wanted`; otherwise returns the text itself.
pub(super) fn json_or_text(text: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    json::parse(text).ok().filter(wanted).unwrap_or_else(|| text.into())
}

/// Parses `text` as true or false; otherwise returns the text itself.
pub(super) fn yes_or_no(text: &str) -> Value {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" => true.into(),
        "false" | "no" => false.into(),
        _ => text.into(),
    }
}
