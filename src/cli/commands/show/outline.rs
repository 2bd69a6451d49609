//! A form's questions in 80 columns: one line per question, with its settings below.

use console::measure_text_width;

use crate::cli::input::answers;
use crate::cli::output::humanize::{humanize, humanize_item};
use crate::cli::output::{visible, wrap};
use crate::domain::json::Value;

/// Maximum width, in columns.
const WIDTH: usize = 80;

/// Minimum width of a title; a narrower one goes on lines of its own.
const LEAST: usize = 30;

/// Indentation of the lines below a question.
const INDENT: usize = 6;

/// Formats the id, type and title of each question, whether it is required, and below its settings and conditions.
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
    let taken = 2 + measure_text_width(&before);
    let title = text(question, "title");
    if taken + LEAST > WIDTH {
        return format!("{}\n{}", format!("  {before}").trim_end(), indented(&title, INDENT));
    }
    let title = wrap(&title, WIDTH - taken).replace('\n', &format!("\n{}", " ".repeat(taken)));
    format!("  {before}{title}").trim_end().to_owned() + "\n"
}

/// Members shown elsewhere: in the row, or as words.
const SHOWN_ELSEWHERE: [&str; 7] =
    ["id", "type", "title", "required", "description", "show_if", "required_if"];

fn details(question: &Value) -> String {
    let Value::Object(members) = question else { return String::new() };
    let settings = members.iter().filter(|(name, _)| !SHOWN_ELSEWHERE.contains(&name.as_str()));
    let (lists, others): (Vec<_>, Vec<_>) = settings.partition(|(_, value)| is_list(value));
    let mut lines = description(question);
    lines.extend(conditions(question));
    let mut details: String = lines.iter().map(|line| indented(line, INDENT)).collect();
    details.extend(lists.into_iter().map(list));
    let others: Vec<_> = others.into_iter().map(setting).collect();
    if !others.is_empty() {
        details.push_str(&indented(&others.join(", "), INDENT));
    }
    details
}

fn setting((name, value): &(String, Value)) -> String {
    format!("{}: {}", visible(name), visible(&humanize(value)))
}

/// Formats a list on one line, wrapped; if labels make it long, one item per line.
fn list(member: &(String, Value)) -> String {
    let line = setting(member);
    let (name, value) = member;
    match value {
        Value::Array(items)
            if measure_text_width(&line) > WIDTH - INDENT - 2
                && items.iter().any(|item| item.get("label").is_some()) =>
        {
            let items = items.iter().map(|item| indented(&visible(&humanize_item(item)), INDENT + 2));
            indented(&format!("{}:", visible(name)), INDENT) + &items.collect::<String>()
        }
        _ => indented(&line, INDENT),
    }
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

/// Returns `shown if …` and `required if …`. Conditions of an unknown question type are shown as JSON.
fn conditions(question: &Value) -> Vec<String> {
    let parsed = answers::known_questions(std::slice::from_ref(question)).pop();
    let words = |name: &str, begin: &str| {
        let written = question.get(name)?;
        let condition =
            parsed.as_ref().and_then(|parsed| parsed.conditions().find(|(other, _)| *other == name));
        let words = condition.map_or_else(|| written.to_string(), |(_, condition)| condition.describe());
        Some(format!("{begin} if {}", visible(&words)))
    };
    [words("show_if", "shown"), words("required_if", "required")].into_iter().flatten().collect()
}

fn indented(line: &str, indent: usize) -> String {
    let begin = " ".repeat(indent);
    let next = format!("\n{begin}  ");
    format!("{begin}{}\n", wrap(line, WIDTH - indent - 2).replace('\n', &next))
}
