//! What a text stands for where a person types an answer, on a command line or in an address.

use crate::domain::json::{self, Value};

/// `text` as the JSON that it is, if that is `wanted`; else the text itself.
pub(super) fn json_or_text(text: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    json::parse(text).ok().filter(wanted).unwrap_or_else(|| text.into())
}

/// `text` as true or false; else the text itself.
pub(super) fn yes_or_no(text: &str) -> Value {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" => true.into(),
        "false" | "no" => false.into(),
        _ => text.into(),
    }
}
