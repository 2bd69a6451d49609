//! Rows of CSV files: from a submission to cells.

use serde::{Deserialize, Serialize};

use super::CsvFile;
use crate::domain::form::Version;
use crate::domain::integration::FieldSelection;
use crate::domain::integration::outbound::CsvRow;
use crate::domain::json::{Value, parse_object};
use crate::domain::submission::Submission;

/// A row before it is bound to its file: the body of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowBody {
    id: String,
    submitted_at: String,
    /// Question ids with their cells.
    cells: Vec<(String, String)>,
}

impl RowBody {
    /// Returns the row of `submission`: a cell for each question that takes an answer and that `selection` lets through, in
    /// the order of the form.
    pub(super) fn new(
        submission: &Submission,
        version: &Version,
        selection: Option<&FieldSelection>,
    ) -> Self {
        let answers = parse_object(&submission.answers).unwrap_or_default();
        let answer = |id: &str| answers.iter().find(|(key, ..)| key == id).map(|(_, value, _)| value);
        let asked = version.questions.iter().filter(|question| question.kind.rules().takes_answer());
        let ids = asked.filter_map(|question| question.id.as_deref());
        let included = ids.filter(|id| selection.is_none_or(|selection| selection.includes(id)));
        Self {
            id: submission.id.to_string(),
            submitted_at: submission.submitted_at().to_string(),
            cells: included.map(|id| (id.to_owned(), answer(id).map_or_else(String::new, cell))).collect(),
        }
    }

    pub(super) fn into_row(self, file: &CsvFile) -> CsvRow {
        let Self { id, submitted_at, cells } = self;
        CsvRow { file: file.clone(), head: [id, submitted_at], cells }
    }
}

/// Returns an answer as the text of a cell: lists and objects as JSON. Text that a spreadsheet would run as a formula gets a
/// leading `'`.
fn cell(answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::String(text) if is_formula(text) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => answer.to_string(),
    }
}

/// First characters of a formula (OWASP, CSV Injection), and those that spreadsheets convert to one of them or skip.
const FORMULA_STARTS: [char; 12] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\0', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Whether a spreadsheet would run `text` as a formula. Numbers such as `-5` are none.
pub fn is_formula(text: &str) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    text.starts_with(FORMULA_STARTS) && !is_number
}

#[cfg(test)]
mod tests {
    use super::cell;
    use crate::domain::json::parse;

    #[test]
    fn cells_are_text_that_no_spreadsheet_runs() {
        for (answer, expected) in [
            (r#""Ann""#, "Ann"),
            (r#""""#, ""),
            ("null", ""),
            ("1.10", "1.10"),
            ("-5", "-5"),
            ("true", "true"),
            (r#"["a","b"]"#, r#"["a","b"]"#),
            (r#"{"other":"x"}"#, r#"{"other":"x"}"#),
            (r#""=1+1""#, "'=1+1"),
            (r#""+49 30""#, "'+49 30"),
            (r#""-5""#, "-5"),
            (r#""-x""#, "'-x"),
            (r#""@SUM(A1)""#, "'@SUM(A1)"),
            (r#""\t=1""#, "'\t=1"),
            (r#""\r=1""#, "'\r=1"),
            (r#""\n=1""#, "'\n=1"),
            (r#""\uff1d1+1""#, "'\u{ff1d}1+1"),
            (r#""-inf""#, "'-inf"),
            (r#"" =1""#, " =1"),
        ] {
            assert_eq!(cell(&parse(answer).unwrap()), expected, "{answer}");
        }
    }
}
