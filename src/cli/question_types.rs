//! The types of questions with their answers and settings, for `forms help questions`.

use serde::Serialize;

use crate::cli::output::wrapped;
use crate::domain::budget::Budget;
use crate::domain::fields::Fields;
use crate::domain::json::Value;
use crate::domain::limits::Limits;
use crate::domain::question::Kind;
use crate::domain::violation::Rule;

/// One type of questions.
#[derive(Debug, Serialize)]
pub struct QuestionType {
    #[serde(rename = "type")]
    name: &'static str,
    /// What it takes for an answer.
    answer: String,
    example: Value,
    /// The names of those of its own.
    settings: Vec<String>,
}

/// All types.
pub fn all() -> impl Iterator<Item = QuestionType> {
    Kind::NAMES.into_iter().filter_map(question_type)
}

/// Reads a question of this type with a member that no type has: what is said of that member names those it has.
fn question_type(name: &'static str) -> Option<QuestionType> {
    let stray = Value::Object(vec![(String::new(), Value::Null)]);
    let mut violations = Vec::new();
    let mut fields = Fields::open(&stray, "", name, &mut violations)?;
    let kind = Kind::read(name, &mut fields, &mut Budget::new(&Limits::BOUNDLESS))?;
    fields.close(&[]);
    let unknown = violations.into_iter().find(|violation| violation.code == Rule::UnknownField)?;
    let rules = kind.rules();
    Some(QuestionType {
        name,
        answer: rules.expects(),
        example: rules.example(),
        settings: unknown.candidates,
    })
}

/// The page.
pub fn text() -> String {
    let mut text = "Types of questions, what each takes for an answer, and its own settings.\n\n".to_owned();
    for QuestionType { name, answer, example, settings } in all() {
        let answer = if example == Value::Null { answer } else { format!("{answer}: {example}") };
        text += &format!("  {name}\n{}", indented(&answer));
        if !settings.is_empty() {
            text += &indented(&format!("settings: {}", settings.join(", ")));
        }
    }
    text + "
Every question has a type and a title; id, description, required, show_if and
required_if are for any of them. What a form can have besides questions:
title, slug, description, settings. `forms validate` checks a file.
"
}

fn indented(text: &str) -> String {
    wrapped(text, 74).lines().map(|line| format!("      {line}\n")).collect()
}
