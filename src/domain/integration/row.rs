//! Rows of tables, one for each submission: from answers to cells.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::FieldSelection;
use super::event::Subject;
use super::kind::Rendering;
use super::settings::Settings;
use super::spec::{Member, MemberValue, Need};
use crate::domain::delivery::attempt::DEFAULT_SCHEDULE;
use crate::domain::form::Version;
use crate::domain::json::{Value, parse_object};
use crate::domain::question::Question;
use crate::domain::submission::Submission;

/// Columns of every table, before those of the questions.
pub const FIRST_COLUMNS: [&str; 2] = ["id", "submitted_at"];

/// The member of every table that says how answers are written.
pub(super) const VALUES: Member = Member {
    name: "values",
    need: Need::Default(r#""labels""#),
    value: MemberValue::Choice(&["labels", "raw"]),
    about: "What a cell has of a choice: the labels of its options, or their values.",
    example: "",
};

/// The waits in milliseconds: those of webhooks, and 24 hours for the rest of a week, since only people can mend a disk or the
/// access to a spreadsheet.
pub(super) const SCHEDULE: [i64; 12] = {
    let mut waits = [24 * 3_600_000; 12];
    let mut place = 0;
    while place < DEFAULT_SCHEDULE.len() {
        waits[place] = DEFAULT_SCHEDULE[place];
        place += 1;
    }
    waits
};

/// A row before it is bound to its table: the body of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowBody<C> {
    pub id: String,
    pub submitted_at: String,
    /// Question ids with their cells.
    pub cells: Vec<(String, C)>,
}

impl<C> RowBody<C> {
    /// Returns the row of `submission`: a cell for each question that takes an answer and that `selection` lets through, in
    /// the order of the form. `cell` gets `null` for a missing answer.
    pub(super) fn new(
        submission: &Submission,
        version: &Version,
        selection: Option<&FieldSelection>,
        cell: impl Fn(&Question, &Value) -> C,
    ) -> Self {
        let answers = parse_object(&submission.answers).unwrap_or_default();
        let answer = |id: &str| answers.iter().find(|(key, ..)| key == id).map(|(_, value, _)| value);
        let cells = column_questions(version, selection)
            .map(|(id, question)| (id.to_owned(), cell(question, answer(id).unwrap_or(&Value::Null))));
        Self {
            id: submission.id.to_string(),
            submitted_at: submission.submitted_at().to_string(),
            cells: cells.collect(),
        }
    }
}

/// Renders the row of the submission that an event is about as the body of a delivery.
pub(super) fn render_row<C: Serialize>(
    rendering: Rendering<'_>,
    cell: impl Fn(&Question, &Value) -> C,
) -> Option<Vec<u8>> {
    let Subject::Submission(submission) = &rendering.event.subject else { return None };
    let row = RowBody::new(submission, rendering.version?, rendering.selection, cell);
    Some(serde_json::to_vec(&row).expect("a row is JSON"))
}

/// Whether cells are for programs.
pub(super) fn is_raw(settings: &Settings) -> bool {
    settings.text(VALUES.name) == Some("raw")
}

/// The questions of `version` that take an answer and that `selection` lets through, with their ids.
pub fn column_questions<'a>(
    version: &'a Version,
    selection: Option<&'a FieldSelection>,
) -> impl Iterator<Item = (&'a str, &'a Question)> {
    let asked = version.questions.iter().filter(|question| question.kind.rules().takes_answer());
    let named = asked.filter_map(|question| Some((question.id.as_deref()?, question)));
    named.filter(move |(id, _)| selection.is_none_or(|selection| selection.includes(id)))
}

/// The name of a question's column: its id, unless that names one of the first columns.
pub fn column_name(question: &str) -> Cow<'_, str> {
    column_name_beside(&FIRST_COLUMNS, question)
}

/// The name of a question's column beside these `others`.
pub fn column_name_beside<'a>(others: &[&str], question: &'a str) -> Cow<'a, str> {
    if others.contains(&question) { format!("answers.{question}").into() } else { question.into() }
}

/// Returns an answer as people read it: with the labels of options and scales, and lists joined with "; ". A number has its
/// label behind it.
pub fn answer_text(question: &Question, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "Yes".to_owned(),
        Value::Bool(false) => "No".to_owned(),
        Value::Number(number) => match label(question, "labels", number.text()) {
            Some(label) => format!("{} ({label})", number.text()),
            None => number.text().to_owned(),
        },
        Value::String(text) => label(question, "options", text).unwrap_or_else(|| text.clone()),
        Value::Array(items) => {
            items.iter().map(|item| answer_text(question, item)).collect::<Vec<_>>().join("; ")
        }
        Value::Object(members) => match &members[..] {
            [(name, Value::String(other))] if name == "other" => other.clone(),
            rows => {
                rows.iter().map(|(row, value)| row_text(question, row, value)).collect::<Vec<_>>().join("; ")
            }
        },
    }
}

/// Returns an answer as programs read it in a cell: with the values of options, several joined with "; " unless one contains that,
/// and other objects than `{"other": "text"}` as JSON.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().map(value_text).collect();
            let is_ambiguous = texts.iter().any(|text| text.contains("; "));
            if is_ambiguous { value.to_string() } else { texts.join("; ") }
        }
        Value::Object(members) => match &members[..] {
            [(name, Value::String(other))] if name == "other" => other.clone(),
            _ => value.to_string(),
        },
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// `Room: Good`, a row of a matrix.
fn row_text(question: &Question, row: &str, value: &Value) -> String {
    let row = label(question, "rows", row).unwrap_or_else(|| row.to_owned());
    let column = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        label(question, "columns", &text).unwrap_or(text)
    };
    let columns: Vec<_> = match value {
        Value::Array(items) => items.iter().map(column).collect(),
        other => vec![column(other)],
    };
    format!("{row}: {}", columns.join(", "))
}

/// The label of `value` in the setting `name`, a list of options or an object of labels.
fn label(question: &Question, name: &str, value: &str) -> Option<String> {
    let setting = question.setting(name)?;
    let found = match &setting {
        Value::Array(items) => {
            items.iter().find(|item| item.get("value").and_then(Value::as_str) == Some(value))?.get("label")
        }
        labels => labels.get(value),
    };
    found?.as_str().map(str::to_owned)
}
