//! The file of answers that is opened in the editor: every id with its question and rules as comments.

use crate::api::FormDetail;
use crate::cli::output::humanize::humanize;
use crate::cli::output::{visible, wrap};
use crate::domain::condition::Ids;
use crate::domain::language::ENGLISH;
use crate::domain::question::Question;

/// Width of a comment, in columns.
const WIDTH: usize = 76;

/// Returns the file for `questions`, without answers.
pub(super) fn template(form: &FormDetail, questions: &[Question]) -> String {
    let how =
        "Write your answers after the colons; what stays empty is not answered. Save and quit to send them.";
    let head = comment(&form.title) + &form.description.as_deref().map(comment).unwrap_or_default();
    let questions: String = questions.iter().map(entry).collect();
    format!("{head}#\n{}{questions}", comment(how))
}

fn entry(question: &Question) -> String {
    let rules = question.kind.rules();
    if !rules.is_shown() {
        return String::new();
    }
    let mut text = format!("\n{}", comment(&question.title));
    text += &question.description.as_deref().map(comment).unwrap_or_default();
    let Some(id) = question.id.as_ref().filter(|_| question.takes_answer()) else { return text };
    let required = if question.required { " (required)" } else { "" };
    text += &comment(&format!("{}{required}", rules.expects(ENGLISH)));
    for name in ["options", "rows", "columns", "labels"] {
        let setting = question.setting(name).map(|value| comment(&format!("{name}: {}", humanize(&value))));
        text += &setting.unwrap_or_default();
    }
    for (name, condition) in question.conditions() {
        let name = if name == "show_if" { "only" } else { "required" };
        text += &comment(&format!("{name} if {}", condition.describe(ENGLISH, &Ids)));
    }
    format!("{text}{id}:\n")
}

fn comment(text: &str) -> String {
    let lines = text.lines().map(|line| wrap(&visible(line), WIDTH));
    lines.flat_map(|line| line.lines().map(|line| format!("# {line}\n")).collect::<Vec<_>>()).collect()
}
