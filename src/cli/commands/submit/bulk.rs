//! Many submissions from a file: all are checked first, then sent in batches. The idempotency key of a batch is made from its
//! content, so the same command adds exactly what is missing.

use indicatif::ProgressBar;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::Submit;
use crate::api::{BatchResult, Code, FormDetail, Problem};
use crate::cli::commands::{CliError, Session};
use crate::cli::input::answers;
use crate::cli::input::rows::{Columns, Row, RowFile};
use crate::cli::output::columns::Columns as ColumnNames;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::Exit;
use crate::cli::output::form_state::{display_name, not_accepting, with_open_hint};
use crate::cli::output::humanize::{count_noun, grouped};
use crate::cli::output::listing::{Column, Listing};
use crate::cli::output::table::Cell;
use crate::cli::output::{Format, render_error};
use crate::client::{Client, ClientError};
use crate::domain::form::Version;
use crate::domain::json::Value;
use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::batch::MAX_ROWS;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::MAX_VIOLATIONS;
use crate::id::SubmissionId;

pub(super) const COLUMNS: ColumnNames = ColumnNames::Fixed(&["row", "status", "id", "code", "detail"]);

/// Bytes after which a batch is sent, an eighth of what a server accepts by default.
const BATCH_BYTES: usize = 1 << 20;

/// Rows that are checked without a pause in which a signal is noticed.
const CHECKED_AT_ONCE: usize = 1_000;

/// What became of a row, as it is printed.
#[derive(Debug, Serialize)]
struct RowResult {
    row: usize,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<SubmissionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<OpenEnum<Code>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Sends the rows of `file`, after checking all of them.
pub(super) async fn run(submit: &Submit, file: &RowFile, session: &Session) -> Result<(), CliError> {
    let client = session.client().await?;
    let form = client.get_form(&submit.form).await?;
    if let Some(reason) = form.accepting_reason.as_ref().and_then(OpenEnum::known) {
        return Err(not_accepting(&form, reason, &session.command_prefix()));
    }
    let all = answers::parse_questions(&form.questions);
    let questions = answers::known_questions(&all);
    let columns = file.columns(&questions, &submit.metadata)?;
    let skipped: Vec<_> = columns.skipped().collect();
    if !skipped.is_empty() {
        let help = "--metadata COLUMN keeps one";
        session.output.warn(&format!("columns that are not imported: {}; {help}", skipped.join(", ")));
    }
    // With a question type that this version does not know, only the server can check.
    let is_known = questions.len() == all.len();
    let version = is_known.then(|| Version::new(form.version, form.created_at, questions.clone()));
    let total = check(session, &form, file, &columns, version.as_ref()).await?;
    let progress = session.output.progress_of(total, file.unit());
    let mut import = Import {
        submit,
        session,
        client: &client,
        form: &form,
        unit: file.unit(),
        total,
        progress,
        stored: 0,
        replayed: 0,
        failures: Vec::new(),
        results: Vec::new(),
        is_done: false,
    };
    import.send_all(file, &columns).await?;
    import.finish()
}

/// Checks all rows as the server does, and returns their number.
///
/// # Errors
/// With the problems of all rows.
async fn check(
    session: &Session,
    form: &FormDetail,
    file: &RowFile,
    columns: &Columns<'_>,
    version: Option<&Version>,
) -> Result<usize, CliError> {
    let (mut diagnostics, mut total) = (Vec::new(), 0);
    let unknown = form.settings.unknown_answers();
    for row in file.rows(columns)? {
        let (number, row) = row?;
        let place = format!("{} {number}", file.unit());
        match (row, version) {
            (Ok(row), Some(version)) => {
                let checked = version.check(&row.answers, &Limits::UNLIMITED, session.now());
                let (_, wrong) = answers::split_dropped(checked.err().unwrap_or_default(), unknown);
                diagnostics.extend(wrong.into_iter().map(|violation| {
                    let name = columns.name_of(violation.question.as_deref().unwrap_or(&violation.pointer));
                    Diagnostic::of(&violation).about(&format!("{place}, `{name}`"))
                }));
            }
            (Ok(_), None) => {}
            (Err(problems), _) => diagnostics
                .extend(problems.iter().map(|(code, message)| Diagnostic::new(code, message).about(&place))),
        }
        if diagnostics.len() > MAX_VIOLATIONS {
            break;
        }
        total += 1;
        if total % CHECKED_AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
    }
    match diagnostics.is_empty() {
        true => Ok(total),
        false => {
            let mut report = Report::of_file(&file.name(), diagnostics);
            report.summary += ", nothing was sent";
            Err(report.into())
        }
    }
}

/// Rows that are sent together.
#[derive(Default)]
struct Pending {
    /// The rows' numbers.
    numbers: Vec<usize>,
    /// Their submissions in JSON, joined by commas.
    rows: String,
}

impl Pending {
    fn has_room(&self, row: &str) -> bool {
        self.numbers.is_empty() || self.numbers.len() < MAX_ROWS && self.rows.len() + row.len() < BATCH_BYTES
    }

    fn push(&mut self, number: usize, row: &str) {
        self.rows.push_str(if self.numbers.is_empty() { "" } else { "," });
        self.rows.push_str(row);
        self.numbers.push(number);
    }
}

/// The progress of sending. When dropped before its end, says how to go on, also after a signal.
struct Import<'a> {
    submit: &'a Submit,
    session: &'a Session,
    client: &'a Client,
    form: &'a FormDetail,
    unit: &'static str,
    total: usize,
    progress: ProgressBar,
    stored: usize,
    /// How many of those stored an earlier command has stored.
    replayed: usize,
    failures: Vec<serde_json::Value>,
    /// What the formats for programs print at the end.
    results: Vec<RowResult>,
    is_done: bool,
}

impl Import<'_> {
    async fn send_all(&mut self, file: &RowFile, columns: &Columns<'_>) -> Result<(), CliError> {
        let mut pending = Pending::default();
        for row in file.rows(columns)? {
            let (number, row) = row?;
            let changed = |_| CliError::usage(format!("{} was changed while it was read", file.name()));
            let row = body(row.map_err(changed)?);
            if !pending.has_room(&row) {
                self.send(std::mem::take(&mut pending)).await?;
            }
            pending.push(number, &row);
        }
        if !pending.numbers.is_empty() {
            self.send(pending).await?;
        }
        Ok(())
    }

    async fn send(&mut self, pending: Pending) -> Result<(), CliError> {
        let Submit { dry_run, no_notify, .. } = *self.submit;
        let Pending { numbers, rows } = pending;
        let mut hash = Xxh3::new();
        hash.update(self.form.id.to_string().as_bytes());
        hash.update(&numbers[0].to_be_bytes());
        hash.update(rows.as_bytes());
        let key = format!("rows-{:032x}", hash.digest128());
        let body = format!(r#"{{"submissions":[{rows}]}}"#);
        let id = self.form.id.to_string();
        let sent = self.client.create_submissions(&id, body, key, dry_run, !no_notify).await;
        let (batch, is_replayed) = sent.map_err(|error| {
            with_open_hint(error, &display_name(self.form), &self.session.command_prefix())
        })?;
        self.progress.inc(numbers.len() as u64);
        let before = self.stored;
        for (row, result) in numbers.into_iter().zip(batch.results) {
            self.record(row, result)?;
        }
        self.replayed += if is_replayed { self.stored - before } else { 0 };
        Ok(())
    }

    fn record(&mut self, row: usize, result: BatchResult) -> Result<(), CliError> {
        let output = &self.session.output;
        let BatchResult { status, id, code, detail, errors, .. } = result;
        self.stored += usize::from(id.is_some());
        if let Some(code) = &code {
            let known = Problem::new(code.known().unwrap_or(Code::ValidationFailed));
            let messages: Vec<_> =
                errors.iter().map(|one| format!("{}: {}", one.pointer, one.message)).collect();
            let detail = if messages.is_empty() { detail.clone() } else { Some(messages.join("; ")) };
            let problem = Problem { status, code: code.clone(), detail, errors, ..known };
            let (error, item) =
                (ClientError::Problem(Box::new(problem)).into(), format!("{} {row}", self.unit));
            if output.reports_json() {
                let mut document = render_error::problem_document(&error);
                document["item"] = item.into();
                self.failures.push(document);
            } else {
                self.failures.push(serde_json::Value::Null);
                self.progress.suspend(|| output.report_item_error(&item, &error, None));
            }
        }
        if output.format != Format::Table {
            self.results.push(RowResult { row, status, id, code, detail });
            return Ok(());
        }
        match id {
            // On a terminal, a thousand ids would hide what matters.
            Some(id) if !self.submit.dry_run && !output.truncates_rows() => output.data(&format!("{id}\n")),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<(), CliError> {
        self.is_done = true;
        self.progress.finish_and_clear();
        let output = &self.session.output;
        if output.format != Format::Table {
            let columns = vec![
                Column::new("row", |one: &RowResult| Cell::number(one.row)),
                Column::new("status", |one: &RowResult| Cell::number(one.status)),
                Column::new("id", |one: &RowResult| {
                    Cell::text(one.id.map(|id| id.to_string()).unwrap_or_default())
                }),
                Column::new("code", |one: &RowResult| {
                    Cell::text(one.code.as_ref().map(ToString::to_string).unwrap_or_default())
                }),
                Column::new("detail", |one: &RowResult| Cell::text(one.detail.clone().unwrap_or_default())),
            ];
            Listing::new(output, "results", "", columns).show_items(std::mem::take(&mut self.results))?;
        }
        let rows = count_noun(self.stored, "row");
        match (self.submit.dry_run, self.replayed) {
            (true, _) => output.status(&format!("{rows} would be accepted; nothing was stored")),
            (false, 0) => output.success(&format!("{rows} submitted to \"{}\"", self.form.title)),
            (false, earlier) => output.success(&format!(
                "{rows} submitted to \"{}\", {} of them by an earlier command",
                self.form.title,
                grouped(earlier as u64)
            )),
        }
        match self.failures.len() {
            0 => Ok(()),
            failed => {
                let failures = std::mem::take(&mut self.failures);
                Err(CliError::Partial { failed, of: self.total, exit: Exit::Partial, failures })
            }
        }
    }
}

impl Drop for Import<'_> {
    fn drop(&mut self) {
        if !self.is_done && !self.submit.dry_run {
            self.progress.finish_and_clear();
            let stored =
                format!("{} of {} rows are stored", grouped(self.stored as u64), grouped(self.total as u64));
            let help =
                "run the same command within 24 hours to add the rest; a changed file is another import";
            self.session.output.warn(&format!("{stored}; {help}"));
        }
    }
}

/// The body of a submission.
fn body(row: Row) -> String {
    let mut members = vec![("answers".to_owned(), Value::Object(row.answers))];
    if !row.metadata.is_empty() {
        members.push(("metadata".to_owned(), Value::Object(row.metadata)));
    }
    Value::Object(members).to_string()
}
