//! Cells of CSV files.

use crate::domain::integration::row::answer_text;
use crate::domain::json::Value;
use crate::domain::question::Question;

/// Returns an answer as the text of a cell for people: options by their labels, lists joined.
pub(super) fn cell(question: &Question, answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => answer.to_string(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => plain(answer_text(question, answer)),
    }
}

/// Returns an answer as the text of a cell for programs: values of options, lists and objects as JSON.
pub(super) fn raw_cell(answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::String(text) => plain(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => answer.to_string(),
    }
}

/// Returns text with a leading `'` if a spreadsheet would run it as a formula.
fn plain(text: String) -> String {
    if is_formula(&text) { format!("'{text}") } else { text }
}

/// First characters of a formula (OWASP, CSV Injection), and those that spreadsheets convert to one of them or skip.
const FORMULA_STARTS: [char; 12] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\0', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Whether a spreadsheet would run `text` as a formula. Numbers such as `-5` are none.
pub fn is_formula(text: &str) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    text.starts_with(FORMULA_STARTS) && !is_number
}
