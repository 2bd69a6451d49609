//! Question types with their answers and settings, for `forms help questions`.

use serde::Serialize;

use crate::cli::output::wrap;
use crate::domain::json::Value;
use crate::domain::question::QuestionKind;

#[derive(Debug, Serialize)]
pub(super) struct QuestionType {
    #[serde(rename = "type")]
    name: &'static str,
    /// Description of the expected answer.
    answer: String,
    example: Value,
    /// Names of the type's own settings.
    settings: Vec<&'static str>,
}

pub(super) fn all() -> Vec<QuestionType> {
    let question_type = |name| {
        let kind = QuestionKind::example(name)?;
        let rules = kind.rules();
        let settings = QuestionKind::settings(name);
        Some(QuestionType { name, answer: rules.expects(), example: rules.example(), settings })
    };
    QuestionKind::NAMES.into_iter().filter_map(question_type).collect()
}

pub(super) fn text() -> String {
    let mut text = "Question types, with the expected answer and the settings of each.\n\n".to_owned();
    for QuestionType { name, answer, example, settings } in all() {
        let answer = if example == Value::Null { answer } else { format!("{answer}: {example}") };
        text += &format!("  {name}\n{}", indented(&answer));
        if !settings.is_empty() {
            text += &indented(&format!("settings: {}", settings.join(", ")));
        }
    }
    text + "
Every question has a type and a title, and can have id, description, required,
show_if and required_if. Besides questions, a form has title, slug, description
and settings. `forms validate` checks a file.
"
}

fn indented(text: &str) -> String {
    wrap(text, 74).lines().map(|line| format!("      {line}\n")).collect()
}
