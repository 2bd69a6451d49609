//! A form's questions as a person reads them, in 80 columns: a row for each, and under it what else there is to it.

use console::measure_text_width;

use crate::cli::answers;
use crate::cli::output::{visible, wrapped};
use crate::cli::words::said;
use crate::domain::json::Value;

/// Columns of an ordinary terminal.
const WIDTH: usize = 80;

/// Columns that a title has at least: where ids are long, its lines are too.
const LEAST: usize = 30;

/// What begins the lines under a question.
const INDENT: &str = "      ";

/// Id, type and title of each question, whether it must be answered, and under that its settings and conditions.
pub(super) fn outline(questions: &[Value]) -> String {
    let widest = |name| {
        let texts = questions.iter().map(|question| measure_text_width(&text(question, name)));
        texts.max().unwrap_or_default()
    };
    let mark = if questions.iter().any(is_required) { REQUIRED.len() } else { 0 };
    let widths = [widest("id"), widest("type"), mark];
    questions.iter().map(|question| head(question, widths) + &details(question)).collect()
}

const REQUIRED: &str = "required";

fn is_required(question: &Value) -> bool {
    question.get("required") == Some(&Value::Bool(true))
}

fn text(question: &Value, name: &str) -> String {
    match question.get(name) {
        Some(Value::String(text)) => visible(text),
        _ => String::new(),
    }
}

fn head(question: &Value, widths: [usize; 3]) -> String {
    let mark = if is_required(question) { REQUIRED } else { "" };
    let cells = [text(question, "id"), text(question, "type"), mark.to_owned()];
    let cell = |(cell, width): (&String, usize)| match width {
        0 => String::new(),
        width => format!("{cell}{}  ", " ".repeat(width - measure_text_width(cell))),
    };
    let before: String = cells.iter().zip(widths).map(cell).collect();
    let room = WIDTH.saturating_sub(2 + measure_text_width(&before)).max(LEAST);
    let title = wrapped(&text(question, "title"), room)
        .replace('\n', &format!("\n  {}", " ".repeat(measure_text_width(&before))));
    format!("  {before}{title}").trim_end().to_owned() + "\n"
}

/// What stands in the row already, or is said in words.
const TOLD: [&str; 7] = ["id", "type", "title", "required", "description", "show_if", "required_if"];

fn details(question: &Value) -> String {
    let Value::Object(members) = question else { return String::new() };
    let mut lines = description(question);
    lines.extend(conditions(question));
    let settings = || members.iter().filter(|(name, _)| !TOLD.contains(&name.as_str()));
    let (lists, others): (Vec<_>, Vec<_>) = settings().partition(|(_, value)| is_list(value));
    let said = |(name, value): &(String, Value)| format!("{}: {}", visible(name), visible(&said(value)));
    lines.extend(lists.into_iter().map(said));
    lines.push(others.into_iter().map(said).collect::<Vec<_>>().join(", "));
    lines.iter().filter(|line| !line.is_empty()).map(|line| indented(line)).collect()
}

fn description(question: &Value) -> Vec<String> {
    match question.get("description") {
        Some(Value::String(text)) => text.lines().map(visible).collect(),
        _ => Vec::new(),
    }
}

fn is_list(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// `shown if …` and `required if …`. Those of a type that this version does not know stay as they are written.
fn conditions(question: &Value) -> Vec<String> {
    let known = answers::known(std::slice::from_ref(question)).pop();
    let words = |name: &str, begin: &str| {
        let written = question.get(name)?;
        let condition = known.as_ref().and_then(|known| known.conditions().find(|(other, _)| *other == name));
        let words = condition.map_or_else(|| written.to_string(), |(_, condition)| condition.words());
        Some(format!("{begin} if {}", visible(&words)))
    };
    [words("show_if", "shown"), words("required_if", "required")].into_iter().flatten().collect()
}

fn indented(line: &str) -> String {
    let next = format!("\n{INDENT}  ");
    format!("{INDENT}{}\n", wrapped(line, WIDTH - INDENT.len() - 2).replace('\n', &next))
}
