//! A form's questions in 80 columns: a line for each question, with its title, conditions and settings below.

use crate::cli::input::answers;
use crate::cli::output::humanize::{humanize, humanize_item};
use crate::cli::output::{visible, wrap};
use crate::domain::condition::Ids;
use crate::domain::json::Value;
use crate::domain::language::ENGLISH;

/// Maximum width, in columns.
const WIDTH: usize = 80;

/// Members that are not shown as settings.
const SHOWN_ELSEWHERE: [&str; 7] =
    ["id", "type", "title", "required", "description", "show_if", "required_if"];

/// Formats the id and type of each question, whether it is required, and below its title, conditions and settings.
pub(super) fn outline(questions: &[Value]) -> String {
    questions.iter().map(|question| head(question) + &details(question)).collect()
}

fn text(question: &Value, name: &str) -> String {
    question.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn head(question: &Value) -> String {
    let required = if question.get("required") == Some(&Value::Bool(true)) { ", required" } else { "" };
    let line = format!("{}  {}{required}", text(question, "id"), text(question, "type"));
    format!("  {}\n", visible(line.trim_start()))
}

fn details(question: &Value) -> String {
    let Value::Object(members) = question else { return String::new() };
    let mut lines = vec![text(question, "title")];
    lines.extend(text(question, "description").lines().map(str::to_owned));
    lines.extend(conditions(question));
    for (name, value) in members.iter().filter(|(name, _)| !SHOWN_ELSEWHERE.contains(&name.as_str())) {
        match value {
            Value::Array(items) if items.iter().any(|item| item.get("label").is_some()) => {
                lines.push(format!("{name}:"));
                lines.extend(items.iter().map(|item| format!("  {}", humanize_item(item))));
            }
            _ => lines.push(format!("{name}: {}", humanize(value))),
        }
    }
    lines.iter().map(|line| format!("{}\n", indented(&visible(line)))).collect()
}

/// Returns `shown if …` and `required if …`. Conditions of an unknown question type are shown as JSON.
fn conditions(question: &Value) -> Vec<String> {
    let parsed = answers::known_questions(std::slice::from_ref(question)).pop();
    let words = |name: &str, begin: &str| {
        let written = question.get(name)?;
        let condition =
            parsed.as_ref().and_then(|parsed| parsed.conditions().find(|(other, _)| *other == name));
        let words =
            condition.map_or_else(|| written.to_string(), |(_, condition)| condition.describe(ENGLISH, &Ids));
        Some(format!("{begin} if {words}"))
    };
    [words("show_if", "shown"), words("required_if", "required")].into_iter().flatten().collect()
}

fn indented(line: &str) -> String {
    let indent = " ".repeat(6 + line.len() - line.trim_start().len());
    indent.clone()
        + &wrap(line.trim_start(), WIDTH - indent.len() - 2).replace('\n', &format!("\n{indent}  "))
}
