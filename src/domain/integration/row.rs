//! Rows of tables, one for each submission: from answers to cells.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::FieldSelection;
use crate::domain::delivery::attempt::DEFAULT_SCHEDULE;
use crate::domain::form::Version;
use crate::domain::json::{Value, parse_object};
use crate::domain::submission::Submission;

/// Columns of every table, before those of the questions.
pub const FIRST_COLUMNS: [&str; 2] = ["id", "submitted_at"];

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
        cell: impl Fn(&Value) -> C,
    ) -> Self {
        let answers = parse_object(&submission.answers).unwrap_or_default();
        let answer = |id: &str| answers.iter().find(|(key, ..)| key == id).map(|(_, value, _)| value);
        let cells = column_ids(version, selection).map(|id| (id.to_owned(), cell(answer(id).unwrap_or(&Value::Null))));
        Self {
            id: submission.id.to_string(),
            submitted_at: submission.submitted_at().to_string(),
            cells: cells.collect(),
        }
    }
}

/// The ids of the questions of `version` that take an answer and that `selection` lets through.
pub(super) fn column_ids<'a>(
    version: &'a Version,
    selection: Option<&FieldSelection>,
) -> impl Iterator<Item = &'a str> + use<'_, 'a> {
    let asked = version.questions.iter().filter(|question| question.kind.rules().takes_answer());
    let ids = asked.filter_map(|question| question.id.as_deref());
    ids.filter(move |id| selection.is_none_or(|selection| selection.includes(id)))
}

/// The name of a question's column: its id, unless that names one of the first columns.
pub fn column_name(question: &str) -> Cow<'_, str> {
    if FIRST_COLUMNS.contains(&question) { format!("answers.{question}").into() } else { question.into() }
}
