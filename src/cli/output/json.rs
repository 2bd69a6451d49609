//! JSON output: on one line for programs, indented for people.

use serde::Serialize;

use crate::cli::output::exit::CliError;
use crate::cli::output::text::is_terminal_control;
use crate::domain::json::{self, Value};

/// Serializes `object` on one line. Numbers and answers keep their text; line breaks between tokens are replaced.
pub fn json_line<T: Serialize>(object: &T) -> Result<String, CliError> {
    // JSON strings have no raw line breaks, so these are between tokens.
    Ok(serialize(object)?.replace(['\n', '\r'], " ") + "\n")
}

/// Converts `object` to a value that keeps the order of members and the text of numbers.
pub fn value_of<T: Serialize>(object: &T) -> Result<Value, CliError> {
    json::parse(&serialize(object)?).map_err(unwritable)
}

fn serialize<T: Serialize>(object: &T) -> Result<String, CliError> {
    serde_json::to_string(object).map_err(unwritable)
}

fn unwritable(error: impl ToString) -> CliError {
    CliError::Failed { message: "cannot write JSON".to_owned(), causes: vec![error.to_string()] }
}

const KEY: &str = "\u{1b}[34m";
const TEXT: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[0m";

/// Formats `value` on several lines, indented by two spaces, without terminal control characters.
pub fn indented(value: &Value, colour: bool) -> String {
    format_value(value, "\n", colour) + "\n"
}

/// Formats `value`; `line_break` has the indentation of its own lines.
fn format_value(value: &Value, line_break: &str, colour: bool) -> String {
    let inner = format!("{line_break}  ");
    let lines = |items: Vec<String>| items.join(&format!(",{inner}"));
    let item = |item: &Value| format_value(item, &inner, colour);
    match value {
        Value::Array(items) if !items.is_empty() => {
            format!("[{inner}{}{line_break}]", lines(items.iter().map(item).collect()))
        }
        Value::Object(members) if !members.is_empty() => {
            let member = |(key, value): &(String, Value)| {
                format!("{}: {}", painted(&key.as_str().into(), KEY, colour), item(value))
            };
            format!("{{{inner}{}{line_break}}}", lines(members.iter().map(member).collect()))
        }
        Value::String(_) => painted(value, TEXT, colour),
        _ => value.to_string(),
    }
}

fn painted(value: &Value, paint: &str, colour: bool) -> String {
    let text = escaped(value);
    if colour { format!("{paint}{text}{RESET}") } else { text }
}

/// Formats `value` as JSON without characters that are invisible, control a terminal, or that YAML does not allow.
pub fn escaped(value: &Value) -> String {
    let is_escaped = |character| {
        matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}') || is_terminal_control(character)
    };
    let escape = |character: char| match is_escaped(character) {
        true => format!("\\u{:04x}", u32::from(character)),
        false => character.to_string(),
    };
    value.to_string().chars().map(escape).collect()
}
