//! The answer that the text of a cell means: values or labels of options, lists joined with `; `. What an export writes is read
//! back.

use crate::domain::integration::csv_file::is_formula;
use crate::domain::json::{self, Object, Value};
use crate::domain::question::Question;

/// Separator of the items of a list.
const SEPARATOR: &str = "; ";

/// Converts the text of a cell, which is not blank.
pub(super) fn parse_cell(question: &Question, cell: &str) -> Value {
    // An export puts it before what a spreadsheet would run.
    let cell = cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell);
    let kind = &question.kind;
    let parsed = kind.rules().parse_text(cell);
    if !matches!(parsed, Value::String(_)) {
        return parsed;
    }
    let text = cell.trim();
    let (options, rows) = (choices(question, "options"), choices(question, "rows"));
    if !rows.is_empty() {
        return parse_matrix(question, &rows, text);
    }
    if kind.answer_is_list() {
        return Value::Array(split(text, &options).map(|item| option(question, &options, item)).collect());
    }
    if !options.is_empty() {
        return option(question, &options, text);
    }
    match kind.name() {
        "datetime" if text.len() == "2026-11-20".len() => Value::String(format!("{text}T00:00:00Z")),
        "time" if text.len() == "9:30".len() => Value::String(format!("0{text}")),
        "short_text" | "long_text" | "hidden" => parsed,
        _ => text.into(),
    }
}

/// Returns values and labels of the options, or the like, in the setting `name`.
pub fn choices(question: &Question, name: &str) -> Vec<(String, String)> {
    let setting = question.setting(name);
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let choice = |item: &Value| {
        let value = item.as_str().map(str::to_owned).or_else(|| text(item, "value"))?;
        let label = text(item, "label").unwrap_or_else(|| value.clone());
        Some((value, label))
    };
    setting.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(choice).collect()
}

/// The value of the option that `text` names: by its value, or else by its label.
fn value_of<'a>(choices: &'a [(String, String)], text: &str) -> Option<&'a str> {
    let by_value = choices.iter().find(|(value, _)| value == text);
    by_value.or_else(|| choices.iter().find(|(_, label)| label == text)).map(|(value, _)| value.as_str())
}

fn option(question: &Question, choices: &[(String, String)], text: &str) -> Value {
    match value_of(choices, text) {
        Some(value) => value.into(),
        None if question.kind.rules().takes_other() => {
            let written = json::parse(text).ok().filter(|value| value.get("other").is_some());
            written.unwrap_or_else(|| Value::Object(vec![("other".to_owned(), text.into())]))
        }
        None => text.into(),
    }
}

/// Splits a list at its separators; an option may contain some.
fn split<'a>(text: &'a str, choices: &'a [(String, String)]) -> impl Iterator<Item = &'a str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let names = choices.iter().flat_map(|(value, label)| [value, label]);
        let begins = |name: &&String| {
            text.strip_prefix(name.as_str())
                .is_some_and(|after| after.is_empty() || after.starts_with(SEPARATOR))
        };
        let named = names.filter(begins).map(String::len).max();
        let end = named.or_else(|| text.find(SEPARATOR)).unwrap_or(text.len());
        rest = text.get(end + SEPARATOR.len()..);
        Some(&text[..end])
    })
    .filter(|item| !item.trim().is_empty())
}

/// Converts `Room: Good; Food: Bad`, or with several columns of a row `Room: Warm, Quiet`.
fn parse_matrix(question: &Question, rows: &[(String, String)], text: &str) -> Value {
    let columns = choices(question, "columns");
    let is_multiple = question.setting("multiple") == Some(Value::Bool(true));
    let column = |name: &str| Value::from(value_of(&columns, name).unwrap_or(name));
    let row = |part: &str| {
        let (value, cell) = rows.iter().find_map(|(value, label)| {
            let after = |name: &String| part.strip_prefix(name.as_str())?.strip_prefix(": ");
            Some((value, after(label).or_else(|| after(value))?))
        })?;
        let answer = match is_multiple {
            true => Value::Array(cell.split(", ").map(column).collect()),
            false => column(cell),
        };
        Some((value.clone(), answer))
    };
    let cells: Option<Object> = text.split(SEPARATOR).map(row).collect();
    cells.map_or_else(|| text.into(), Value::Object)
}
