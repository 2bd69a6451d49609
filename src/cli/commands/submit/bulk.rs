//! Many submissions from a file: all are checked first, then sent in batches. The idempotency key of a batch is made from its
//! content, so the same command adds exactly what is missing.

use indicatif::ProgressBar;
use serde_json::json;
use xxhash_rust::xxh3::Xxh3;

use super::Submit;
use crate::api::{BatchResult, Code, FormDetail, Problem};
use crate::cli::commands::batch::Batch;
use crate::cli::commands::{CliError, Session};
use crate::cli::input::answers;
use crate::cli::input::rows::{Columns, FileStamp, Row, RowFile};
use crate::cli::output::columns::Columns as ColumnNames;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::form_state::{display_name, not_accepting, with_open_hint};
use crate::cli::output::humanize::{count_noun, grouped};
use crate::client::{Client, ClientError};
use crate::domain::form::Version;
use crate::domain::json::Value;
use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::batch::MAX_ROWS;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::MAX_VIOLATIONS;

pub(super) const COLUMNS: ColumnNames = ColumnNames::Fixed(&["row", "status", "id"]);

/// Bytes after which a batch is sent, an eighth of what a server accepts by default.
const BATCH_BYTES: usize = 1 << 20;

/// Rows that are checked without a pause in which a signal is noticed.
const CHECKED_AT_ONCE: usize = 1_000;

/// Sends the rows of `file`, after checking all of them.
pub(super) async fn run(submit: &Submit, file: &RowFile, session: &Session) -> Result<(), CliError> {
    let client = session.client().await?;
    let form = client.get_form(&submit.form).await?;
    if let Some(reason) = form.accepting_reason.as_ref().and_then(OpenEnum::known) {
        return Err(not_accepting(&form, reason, &session.command_prefix()));
    }
    let all = answers::parse_questions(&form.questions);
    let questions = answers::known_questions(&all);
    let stamp = file.stamp()?;
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
    let mut batch = Batch::begin(session, total);
    let mut import = Import {
        submit,
        session,
        client: &client,
        form: &form,
        unit: file.unit(),
        total,
        progress,
        batch: &mut batch,
        stored: 0,
        replayed: 0,
    };
    import.expect_unchanged(file, stamp)?;
    import.send_all(file, &columns).await?;
    import.expect_unchanged(file, stamp)?;
    import.finish();
    batch.finish()
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
    let (unknown, texts) = (form.settings.unknown_answers(), form.settings.language().texts());
    for row in file.rows(columns)? {
        let (number, row) = row?;
        let place = format!("{} {number}", file.unit());
        match (row, version) {
            (Ok(row), Some(version)) => {
                let checked = version.check(&row.answers, &Limits::UNLIMITED, session.now(), texts);
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
    /// The rows' numbers, and their submissions in JSON.
    rows: Vec<(usize, String)>,
    bytes: usize,
}

impl Pending {
    fn has_room(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.len() < MAX_ROWS && self.bytes + row.len() < BATCH_BYTES
    }

    fn push(&mut self, number: usize, row: String) {
        self.bytes += row.len();
        self.rows.push((number, row));
    }
}

/// The progress of sending. When dropped before its end, says how to go on, also after a signal.
struct Import<'a, 'b> {
    submit: &'a Submit,
    session: &'a Session,
    client: &'a Client,
    form: &'a FormDetail,
    unit: &'static str,
    total: usize,
    progress: ProgressBar,
    batch: &'b mut Batch<'a>,
    stored: usize,
    /// How many of those stored an earlier command has stored.
    replayed: usize,
}

impl Import<'_, '_> {
    fn expect_unchanged(&self, file: &RowFile, stamp: FileStamp) -> Result<(), CliError> {
        if file.stamp()? == stamp {
            return Ok(());
        }
        Err(CliError::usage(format!("{} was changed after its rows were checked", file.name())))
    }

    async fn send_all(&mut self, file: &RowFile, columns: &Columns<'_>) -> Result<(), CliError> {
        let mut pending = Pending::default();
        for row in file.rows(columns)? {
            let (number, row) = row?;
            let changed = |_| CliError::usage(format!("{} was changed while it was read", file.name()));
            let row = body(row.map_err(changed)?);
            if !pending.has_room(&row) {
                self.send(std::mem::take(&mut pending)).await?;
            }
            pending.push(number, row);
        }
        if !pending.rows.is_empty() {
            self.send(pending).await?;
        }
        Ok(())
    }

    /// Sends rows. Those that an earlier command has sent, and the server has refused, are sent again: the form may have changed.
    async fn send(&mut self, mut pending: Pending) -> Result<(), CliError> {
        for attempt in 0_u32.. {
            let (results, is_replayed) = self.request(&pending, attempt).await?;
            let mut refused = Pending::default();
            for ((number, row), result) in pending.rows.into_iter().zip(results) {
                if is_replayed && result.id.is_none() {
                    refused.push(number, row);
                    continue;
                }
                self.progress.inc(1);
                self.replayed += usize::from(is_replayed);
                self.record(number, result)?;
            }
            if refused.rows.is_empty() {
                return Ok(());
            }
            pending = refused;
        }
        unreachable!("counting attempts never ends")
    }

    async fn request(&self, pending: &Pending, attempt: u32) -> Result<(Vec<BatchResult>, bool), CliError> {
        let Submit { dry_run, no_notify, .. } = *self.submit;
        let (id, mut hash) = (self.form.id.to_string(), Xxh3::new());
        hash.update(id.as_bytes());
        hash.update(&attempt.to_be_bytes());
        for (number, row) in &pending.rows {
            hash.update(&number.to_be_bytes());
            hash.update(row.as_bytes());
        }
        let key = format!("rows-{:032x}", hash.digest128());
        let rows: Vec<_> = pending.rows.iter().map(|(_, row)| row.as_str()).collect();
        let body = format!(r#"{{"submissions":[{}]}}"#, rows.join(","));
        let sent = self.client.create_submissions(&id, body, key, dry_run, !no_notify).await;
        let (batch, is_replayed) = sent.map_err(|error| {
            with_open_hint(error, &display_name(self.form), &self.session.command_prefix())
        })?;
        Ok((batch.results, is_replayed))
    }

    fn record(&mut self, row: usize, result: BatchResult) -> Result<(), CliError> {
        let BatchResult { status, id, code, detail, errors, .. } = result;
        let Some(code) = code else {
            self.stored += 1;
            let output = &self.session.output;
            // On a terminal, a thousand ids would hide what matters.
            let is_shown = !self.submit.dry_run && !output.truncates_rows();
            let text = || id.filter(|_| is_shown).map(|id| format!("{id}\n")).unwrap_or_default();
            return output.object(&json!({"row": row, "status": status, "id": id}), text);
        };
        let messages: Vec<_> = errors.iter().map(|one| format!("{}: {}", one.pointer, one.message)).collect();
        let detail = if messages.is_empty() { detail } else { Some(messages.join("; ")) };
        let known = Problem::new(code.known().unwrap_or(Code::ValidationFailed));
        let error = ClientError::Problem(Box::new(Problem { status, code, detail, errors, ..known }));
        let item = format!("{} {row}", self.unit);
        self.progress.suspend(|| self.batch.record(&item, Err(error.into())))
    }

    fn finish(self) {
        self.progress.finish_and_clear();
        let (output, title, rows) = (&self.session.output, &self.form.title, count_noun(self.stored, "row"));
        match (self.submit.dry_run, self.replayed) {
            (true, _) => output.status(&format!("{rows} would be accepted; nothing was stored")),
            (false, 0) => output.success(&format!("{rows} submitted to \"{title}\"")),
            (false, earlier) => {
                let earlier = grouped(earlier as u64);
                output.success(&format!(
                    "{rows} submitted to \"{title}\", {earlier} of them by an earlier command"
                ));
            }
        }
    }
}

impl Drop for Import<'_, '_> {
    fn drop(&mut self) {
        if self.progress.position() < self.total as u64 && !self.submit.dry_run {
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
