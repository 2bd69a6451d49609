//! Which question each column of a table belongs to.

use super::cell::parse_cell;
use super::{Row, RowProblem};
use crate::cli::output::columns::SUBMISSION_FIELDS;
use crate::cli::output::exit::CliError;
use crate::domain::integration::row::{FIRST_COLUMNS, column_name};
use crate::domain::json::{Object, Value};
use crate::domain::question::Question;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::Rule;

/// The columns of a table, or the members of JSON rows.
#[derive(Debug)]
pub struct Columns<'a> {
    /// The names of a table's columns, and what they are.
    columns: Vec<(String, Column<'a>)>,
    metadata: &'a [String],
}

#[derive(Debug, Clone, Copy)]
enum Column<'a> {
    Answer(&'a Question),
    Metadata,
    /// A value that the server sets, such as the id of an exported submission.
    Skipped,
    /// A column without a name, which must be empty.
    Unnamed,
}

impl Column<'_> {
    /// Whether it has the answers to the question `id`.
    fn answers(self, id: Option<&str>) -> bool {
        matches!(self, Self::Answer(question) if question.id.as_deref() == id)
    }

    fn is_same(self, other: Self) -> bool {
        matches!(self, Self::Answer(question) if other.answers(question.id.as_deref()))
    }
}

impl<'a> Columns<'a> {
    pub(super) fn new(
        file: &str,
        header: Option<Vec<String>>,
        questions: &'a [Question],
        metadata: &'a [String],
    ) -> Result<Self, CliError> {
        let Some(header) = header else { return Ok(Self { columns: Vec::new(), metadata }) };
        if let Some(missing) = metadata.iter().find(|name| !header.contains(name)) {
            let message = format!("{file} has no column `{missing}`");
            return Err(CliError::usage_with_help(message, format!("its columns: {}", header.join(", "))));
        }
        let (mut columns, mut problems) = (Vec::<(String, Column<'_>)>::new(), Vec::new());
        for name in header {
            match find(&name, questions, metadata) {
                Ok(column) => {
                    if let Some((other, _)) = columns.iter().find(|(_, other)| other.is_same(column)) {
                        problems.push(CliError::usage(format!(
                            "{file}: the columns `{other}` and `{name}` belong to the same question"
                        )));
                    }
                    columns.push((name, column));
                }
                Err(problem) => problems.push(CliError::usage_with_help(
                    format!("{file}: {problem}"),
                    "name each column by the id or the title of a question; --metadata COLUMN keeps another",
                )),
            }
        }
        CliError::combine(problems)?;
        Ok(Self { columns, metadata })
    }

    /// The names of the columns that are not imported.
    pub fn skipped(&self) -> impl Iterator<Item = &str> {
        let skipped = self.columns.iter().filter(|(_, column)| matches!(column, Column::Skipped));
        skipped.map(|(name, _)| name.as_str())
    }

    /// The name of the column with the answers to the question `id`; the id itself where there is no table.
    pub fn name_of<'b>(&'b self, id: &'b str) -> &'b str {
        self.columns.iter().find(|(_, column)| column.answers(Some(id))).map_or(id, |(name, _)| name)
    }

    /// Converts a row of a table; `None` if all its cells are blank.
    pub(super) fn row_of_cells(&self, cells: &[String]) -> Option<Result<Row, Vec<RowProblem>>> {
        let (mut row, mut problems, mut is_blank) = (Row::default(), Vec::new(), true);
        for (place, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.trim().is_empty()) {
            is_blank = false;
            match self.columns.get(place) {
                Some((_, Column::Answer(question))) => {
                    let id = question.id.clone().expect("only questions with an id have a column");
                    row.answers.push((id, parse_cell(question, cell)));
                }
                Some((name, Column::Metadata)) => row.metadata.push((name.clone(), cell.as_str().into())),
                Some((_, Column::Skipped)) => {}
                Some((_, Column::Unnamed)) | None => {
                    let message = format!("column {} has no name, but a value: {cell}", place + 1);
                    problems.push((Rule::UnknownField.name(), message));
                }
            }
        }
        (!is_blank).then_some(if problems.is_empty() { Ok(row) } else { Err(problems) })
    }

    /// Converts a row in JSON: a map of answers, or one with `answers` and `metadata`, such as a submission of the API.
    pub(super) fn row_of_json(&self, value: Value) -> Result<Row, Vec<RowProblem>> {
        let kind = value.kind();
        let Value::Object(members) = value else {
            let message = format!("expected an object such as {{\"q1\": \"hello\"}}, found {kind}");
            return Err(vec![(Rule::TypeMismatch.name(), message)]);
        };
        let is_whole =
            members.iter().any(|(name, value)| name == "answers" && matches!(value, Value::Object(_)));
        let (mut row, mut problems) = (Row::default(), Vec::new());
        for (name, value) in members {
            match (name.as_str(), value) {
                ("answers", Value::Object(answers)) => row.answers.extend(answers),
                ("metadata", Value::Object(metadata)) if is_whole => row.metadata.extend(metadata),
                (_, value) if self.metadata.contains(&name) => push_metadata(&mut row.metadata, name, &value),
                (_, value) if !is_whole => row.answers.push((name, value)),
                (known, _) if SUBMISSION_FIELDS.contains(&known) => {}
                (unknown, _) => {
                    problems.push((Rule::UnknownField.name(), format!("unknown field `{unknown}`")));
                }
            }
        }
        if problems.is_empty() { Ok(row) } else { Err(problems) }
    }
}

fn push_metadata(metadata: &mut Object, name: String, value: &Value) {
    if *value != Value::Null {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        metadata.push((name, Value::String(text)));
    }
}

/// Finds what the column `name` is, or says that it is nothing.
fn find<'a>(name: &str, questions: &'a [Question], metadata: &[String]) -> Result<Column<'a>, String> {
    if metadata.iter().any(|kept| kept == name) {
        return Ok(Column::Metadata);
    }
    if name.is_empty() {
        return Ok(Column::Unnamed);
    }
    let asked = || questions.iter().filter(|question| question.takes_answer() && question.id.is_some());
    let has_id = |question: &&Question| column_name(question.id.as_deref().unwrap_or_default()) == name;
    if let Some(question) = asked().find(has_id) {
        return Ok(Column::Answer(question));
    }
    if FIRST_COLUMNS.contains(&name) {
        return Ok(Column::Skipped);
    }
    let titled: Vec<_> = asked().filter(|question| is_titled(question, name)).collect();
    match titled[..] {
        [question] => Ok(Column::Answer(question)),
        [] => {
            let names =
                asked().flat_map(|question| [question.id.as_deref().unwrap_or_default(), &question.title]);
            let near = similar(name, names).map(|near| format!("; a similar one exists: `{near}`"));
            Err(format!("column `{name}` is not a question of the form{}", near.unwrap_or_default()))
        }
        _ => Err(format!("column `{name}` is the title of several questions; use an id")),
    }
}

fn is_titled(question: &Question, name: &str) -> bool {
    question.title.trim().to_lowercase() == name.trim().to_lowercase()
}
