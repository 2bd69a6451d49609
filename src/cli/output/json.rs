//! JSON output: on one line for programs, indented for people.

use serde::Serialize;

use crate::cli::output::exit::CliError;
use crate::cli::output::text::is_terminal_control;
use crate::domain::json::{self, Value};

/// Serializes `object` on one line. Numbers and answers keep their text; line breaks between tokens are replaced.
pub fn json_line<T: Serialize>(object: &T) -> Result<String, CliError> {
    let mut text = serde_json::to_string(object).map_err(|error| unwritable(&error))?;
    if text.contains(['\n', '\r']) {
        // JSON strings have no raw line breaks, so these are between tokens.
        text = text.replace(['\n', '\r'], " ");
    }
    text.push('\n');
    Ok(text)
}

/// Converts `object` to a value that keeps the order of members and the text of numbers.
pub fn value_of<T: Serialize>(object: &T) -> Result<Value, CliError> {
    let text = serde_json::to_string(object).map_err(|error| unwritable(&error))?;
    json::parse(&text).map_err(|error| CliError::Failed {
        what: "cannot write JSON".to_owned(),
        causes: vec![error.to_string()],
    })
}

fn unwritable(error: &serde_json::Error) -> CliError {
    CliError::Failed { what: "cannot write JSON".to_owned(), causes: vec![error.to_string()] }
}

const KEY: &str = "\u{1b}[34m";
const TEXT: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";

/// Formats `value` on several lines, indented by two spaces, without terminal control characters.
pub fn indented(value: &Value, colour: bool) -> String {
    let mut text = String::new();
    write_value(&mut text, value, 0, colour);
    text.push('\n');
    text
}

fn write_value(text: &mut String, value: &Value, depth: usize, colour: bool) {
    let indent = |text: &mut String, depth: usize| text.push_str(&format!("\n{:1$}", "", depth * 2));
    match value {
        Value::Array(items) if !items.is_empty() => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                indent(text, depth + 1);
                write_value(text, item, depth + 1, colour);
            }
            indent(text, depth);
            text.push(']');
        }
        Value::Object(members) if !members.is_empty() => {
            text.push('{');
            for (place, (key, value)) in members.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                indent(text, depth + 1);
                text.push_str(&painted(&Value::String(key.clone()), KEY, colour));
                text.push_str(": ");
                write_value(text, value, depth + 1, colour);
            }
            indent(text, depth);
            text.push('}');
        }
        Value::String(_) => text.push_str(&painted(value, TEXT, colour)),
        _ => text.push_str(&value.to_string()),
    }
}

fn painted(value: &Value, paint: &str, colour: bool) -> String {
    // Escapes terminal control characters as JSON does.
    let escaped = |character: char| match is_terminal_control(character) {
        true => format!("\\u{:04x}", u32::from(character)),
        false => character.to_string(),
    };
    let shown: String = value.to_string().chars().map(escaped).collect();
    if colour { format!("{paint}{shown}{PLAIN}") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::indented;
    use crate::domain::json::parse;

    #[test]
    fn a_person_reads_json_with_a_member_a_line() {
        let value = parse(r#"{"a":[1.10,{"b":"x\u001b"}],"c":{},"d":[]}"#).unwrap();
        let expected = "{\n  \"a\": [\n    1.10,\n    {\n      \"b\": \"x\\u001b\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}\n";
        assert_eq!(indented(&value, false), expected);
        assert!(indented(&value, true).contains("\u{1b}[34m\"c\"\u{1b}[0m: {}"));
    }
}
