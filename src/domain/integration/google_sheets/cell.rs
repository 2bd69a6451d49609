//! Cells of spreadsheets, as JSON.

use serde_json::{Value as Json, json};

use crate::clock::Timestamp;
use crate::domain::integration::row::answer_text;
use crate::domain::json::{Number, Value};
use crate::domain::question::Question;

/// Maximum UTF-16 code units of a cell: Google's limit is 50,000 characters, and it does not document of which kind. One is
/// for the apostrophe that a text is sent with.
const MAX_TEXT: usize = 49_999;

/// The part of a time without milliseconds: `2026-11-20T09:00:00`.
const SECONDS: usize = 19;

/// Digits that a spreadsheet keeps of a number.
const MAX_DIGITS: usize = 15;

/// Returns an answer as a cell for people: numbers, truth values and dates as such, and everything else as text. An empty cell
/// is `null`.
pub(super) fn cell(question: &Question, answer: &Value) -> Json {
    match answer {
        Value::Null | Value::Bool(_) | Value::Number(_) => raw_cell(answer),
        Value::String(text) => match question.kind.name() {
            "date" => json!({ "date": text }),
            "datetime" => Timestamp::parse(text).map_or_else(|| cut(text).into(), time_cell),
            _ => cut(&answer_text(question, answer)).into(),
        },
        Value::Array(_) | Value::Object(_) => cut(&answer_text(question, answer)).into(),
    }
}

/// Returns a moment as a cell, in UTC: `2026-11-20 09:00:00`.
pub(super) fn time_cell(at: Timestamp) -> Json {
    let text = at.to_string();
    json!({ "date": text[..SECONDS].replace('T', " ") })
}

/// Returns an answer as a cell for programs: values of options, and lists and objects as their JSON.
pub(super) fn raw_cell(answer: &Value) -> Json {
    match answer {
        Value::Null => Json::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number_cell(number),
        Value::String(text) => cut(text).into(),
        Value::Array(_) | Value::Object(_) => cut(&answer.to_string()).into(),
    }
}

/// Returns a number as such, or as text if a spreadsheet would round it.
fn number_cell(number: &Number) -> Json {
    let text = number.text();
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    match serde_json::from_str(text) {
        Ok(exact) if digits <= MAX_DIGITS => exact,
        _ => cut(text).into(),
    }
}

fn cut(text: &str) -> String {
    if text.encode_utf16().count() <= MAX_TEXT {
        return text.to_owned();
    }
    let mut units = 1;
    let fits = |character: &char| {
        units += character.len_utf16();
        units <= MAX_TEXT
    };
    text.chars().take_while(fits).chain(['…']).collect()
}
