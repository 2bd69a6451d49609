//! `forms responses show`: shows one submission.

use clap::Args;
use serde_json::value::RawValue;

use crate::api::SubmissionDetail;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers;
use crate::cli::output::columns::{self, SUBMISSION_FIELDS};
use crate::cli::output::humanize::humanize;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::{Format, fields, value_of, visible};
use crate::domain::integration::row::column_name_beside;
use crate::domain::json::{self, Value};
use crate::domain::submission::SubmissionStatus;

/// Show one submission
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  forms responses show frm_7k2m9q4x1abz sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
pub(super) struct Show {
    /// Form, by id or slug
    form: String,
    /// Submission id
    submission: String,
}

impl Run for Show {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let submission = client.get(&["forms", &self.form, "submissions", &self.submission]).await?;
        let output = &session.output;
        if !matches!(output.format, Format::Table | Format::Csv) {
            return output.object(&submission, String::new);
        }
        let form = client.get_form(&self.form).await?;
        let listed = answers::parse_questions(&form.questions);
        if output.format == Format::Table && output.columns.is_empty() {
            return output.write(&summary(&submission, &listed));
        }
        let table = table(&submission, &answers::answer_keys(&listed))?;
        let columns = columns::resolve_names(&output.columns, &table.headers)?;
        output.rows(&table.select(&columns))
    }
}

/// Returns a submission as one row, with a column for each question, which has these keys.
fn table(submission: &SubmissionDetail, questions: &[Vec<String>]) -> Result<Table, CliError> {
    let (whole, answers) = (value_of(submission)?, value_of(&submission.answers)?);
    let beside = || SUBMISSION_FIELDS.iter().copied().filter(|name| *name != "answers");
    let cells = beside().map(|name| Cell::member(&whole, name));
    let row = cells.chain(questions.iter().map(|keys| Cell::of_answer(&answers, keys))).collect();
    let question = |keys: &Vec<String>| column_name_beside(SUBMISSION_FIELDS, &keys[0]).into_owned();
    let headers = beside().map(str::to_owned).chain(questions.iter().map(question)).collect();
    Ok(Table { headers, rows: vec![row] })
}

fn summary(submission: &SubmissionDetail, questions: &[Value]) -> String {
    let is_quarantined = submission.status == SubmissionStatus::Quarantined;
    let text = fields(&[
        ("id", Some(submission.id.to_string())),
        ("form", Some(submission.form_id.to_string())),
        ("status", is_quarantined.then(|| submission.status.to_string())),
        ("submitted", Some(submission.submitted_at.to_string())),
        ("edited", submission.updated_at.map(|time| time.to_string())),
    ]);
    let metadata = submission.metadata.as_ref().map(|metadata| member_lines(metadata, &[]));
    let metadata = metadata.map(|lines| format!("metadata:\n{lines}")).unwrap_or_default();
    text + &metadata + "answers:\n" + &member_lines(&submission.answers, questions)
}

fn member_lines(object: &RawValue, questions: &[Value]) -> String {
    let Ok(Value::Object(members)) = json::parse(object.get()) else { return String::new() };
    let line = |(key, value): &(String, Value)| {
        let asked = questions.iter().find(|question| question.get("id") == Some(&key.as_str().into()));
        let name = match asked.and_then(|question| question.get("title")) {
            Some(Value::String(title)) if title != key => format!("{title} ({key})"),
            _ => key.clone(),
        };
        format!("  {}:{}\n", visible(&name), text_after(&humanize(value)))
    };
    members.iter().map(line).collect()
}

/// Formats a single line after its name, several lines below it.
fn text_after(text: &str) -> String {
    match text.trim_end() {
        text if text.contains('\n') => {
            text.lines().map(|line| format!("\n      {}", visible(line))).collect()
        }
        text => format!(" {}", visible(text)),
    }
}
