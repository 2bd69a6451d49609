//! The body of a batch: the bodies of its submissions.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::BodyError;
use crate::domain::json::parse;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation};

/// Maximum submissions of a batch.
pub const MAX_ROWS: usize = 1_000;

/// How a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchFormat {
    /// `{"submissions":[...]}`
    Json,
    /// A submission on each line.
    JsonLines,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    submissions: Vec<&'a RawValue>,
}

/// Splits the body of a batch into the bodies of its submissions, which are not parsed yet. Blank lines are skipped.
///
/// # Errors
/// If it has no submissions, or more than [`MAX_ROWS`].
pub fn split(body: &str, format: BatchFormat) -> Result<Vec<&str>, BodyError> {
    let rows: Vec<_> = match format {
        BatchFormat::JsonLines => body.lines().filter(|line| !line.trim().is_empty()).collect(),
        BatchFormat::Json => match serde_json::from_str::<Batch<'_>>(body) {
            Ok(batch) => batch.submissions.into_iter().map(RawValue::get).collect(),
            Err(_) => return Err(explain(body)),
        },
    };
    match rows.len() {
        1..=MAX_ROWS => Ok(rows),
        0 => Err(refused(Rule::Empty, "a batch has at least one submission".to_owned())),
        count => {
            Err(refused(Rule::TooMany, format!("{count} submissions are too many, {MAX_ROWS} are allowed")))
        }
    }
}

fn refused(rule: Rule, message: String) -> BodyError {
    BodyError::Shape(vec![Violation::new("/submissions", rule, message)])
}

/// Says what is wrong with a body that is not a batch.
fn explain(body: &str) -> BodyError {
    let value = match parse(body) {
        Ok(value) => value,
        Err(error) => return BodyError::Syntax(error),
    };
    let mut violations = Vec::new();
    if let Some(mut fields) = Fields::open(&value, "", "the body", &mut violations) {
        if fields.required("submissions").is_some() {
            fields.list("submissions", MAX_ROWS);
        }
        fields.close(&[]);
    }
    BodyError::Shape(violations)
}
