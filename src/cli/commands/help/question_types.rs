//! The types of questions with their answers and settings, for `forms help questions`.

use serde::Serialize;

use crate::cli::output::wrapped;
use crate::domain::json::Value;
use crate::domain::question::QuestionKind;

/// One type of questions.
#[derive(Debug, Serialize)]
pub(super) struct QuestionType {
    #[serde(rename = "type")]
    name: &'static str,
    /// What it takes for an answer.
    answer: String,
    example: Value,
    /// The names of those of its own.
    settings: Vec<&'static str>,
}

/// All types.
pub(super) fn all() -> impl Iterator<Item = QuestionType> {
    QuestionKind::NAMES.into_iter().filter_map(question_type)
}

fn question_type(name: &'static str) -> Option<QuestionType> {
    let kind = QuestionKind::example(name)?;
    let rules = kind.rules();
    Some(QuestionType {
        name,
        answer: rules.expects(),
        example: rules.example(),
        settings: QuestionKind::settings(name),
    })
}

/// The page.
pub(super) fn text() -> String {
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
