//! Exports: all submissions that match a request, as text that is read page by page while it is sent. Summaries of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::submissions::SubmissionListRequest;
use super::{ApiError, Current, Result, Session};
use crate::api::{Code, FormSummary, SubmissionDetail};
use crate::domain::form::Form;
use crate::domain::integration::csv_file::{csv_record, escape_formula};
use crate::domain::integration::row::{FIRST_COLUMNS, column_name, value_text};
use crate::domain::json::{Value, parse_object};
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::domain::summary::Summarizer;
use crate::domain::workspace::Scope;
use crate::id::SubmissionId;
use crate::keyed_semaphore::FairPermit;
use crate::store::SubmissionRows;

/// Submissions read at once.
const PAGE: usize = 1_000;

/// Tries to read a page while the server is overloaded.
const MAX_TRIES: usize = 60;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// The text of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The objects of the list, one a line.
    JsonLines,
    /// A table with a header.
    Csv,
}

/// A column: the id of a question, then the ids that it had before.
type Column = Vec<String>;

/// An export in progress.
pub struct Export {
    session: Session,
    form: Arc<Form>,
    /// The status to export of the submissions that do not count; `None` to export those that do.
    uncounted: Option<SubmissionStatus>,
    filter: SubmissionFilter,
    order: Order,
    /// The columns of questions; `None` for JSON lines.
    columns: Option<Arc<[Column]>>,
    /// Text to send before the next page.
    text: String,
    after: Option<SubmissionId>,
    at_end: bool,
    _one_of_few: FairPermit,
}

impl Session {
    /// Begins to export the submissions of a form that match `request`, whose `cursor`, `limit` and `count` have no effect.
    ///
    /// # Errors
    /// Also if too many exports are in progress.
    pub async fn export(
        self,
        form: &str,
        request: SubmissionListRequest,
        format: ExportFormat,
    ) -> Result<Export> {
        self.require_scope(Scope::Read)?;
        let form = self.form(form).await?;
        let permit = self.exports.acquire(self.caller.id).await.ok_or_else(ApiError::overloaded)?;
        let (uncounted, order) = (request.uncounted(), request.order);
        let filter = self.filter(&form, request.query).await?;
        let columns = match format {
            ExportFormat::JsonLines => None,
            ExportFormat::Csv => Some(self.export_columns(&form).await?.into()),
        };
        let text = columns.as_deref().map(header).unwrap_or_default();
        let (session, after, at_end) = (self, None, false);
        Ok(Export {
            session,
            form,
            uncounted,
            filter,
            order,
            columns,
            text,
            after,
            at_end,
            _one_of_few: permit,
        })
    }

    /// Returns the columns of all questions that the form has or had, those that it has first.
    async fn export_columns(&self, form: &Form) -> Result<Vec<Column>> {
        let ids = self.versions.columns(form.reference(), Order::NewestFirst, None).await?;
        let present = self.versions.find(form.reference(), form.version).await?;
        let questions = present.iter().flat_map(|version| &version.questions);
        let was = |id: &String| questions.clone().find(|one| one.id.as_ref() == Some(id)).map(|one| &one.was);
        let is_earlier = |id: &String| questions.clone().any(|question| question.was.contains(id));
        let column =
            |id: &String| std::iter::once(id).chain(was(id).into_iter().flatten()).cloned().collect();
        Ok(ids.iter().filter(|id| !is_earlier(id)).map(column).collect())
    }

    /// Summarizes the submissions of a form that match `query`. Those that arrive meanwhile do not count.
    pub async fn summarize(&self, form: &str, query: SubmissionQuery) -> Result<FormSummary> {
        self.require_scope(Scope::Read)?;
        let Current { form, version } = self.current(form).await?;
        let (sent, generated_at) = (parameters(&query), self.now());
        // It reads as much as an export.
        let _export = self.exports.acquire(self.caller.id).await.ok_or_else(ApiError::overloaded)?;
        let filter = self.filter(&form, query).await?;
        let _job = self.job_permit().await?;
        let (mut summarizer, mut next) = (Summarizer::new(&version.questions), Some(None));
        while let Some(after) = next {
            let page =
                self.store.list_submissions(form.reference(), &filter, Order::NewestFirst, after, PAGE);
            let page = page.await?.ok_or_else(|| ApiError::new(Code::FormNotFound))?;
            next = page.next.map(Some);
            let add = move || {
                page.rows.iter().for_each(|submission| summarizer.add(submission));
                summarizer
            };
            summarizer = self.pool.run(add).await?;
        }
        let summary = self.pool.run(move || summarizer.finish(&version.questions)).await?;
        let (title, status) = (form.title.clone(), form.status.into());
        Ok(FormSummary { form_id: form.id, title, status, generated_at, filter: sent, summary })
    }
}

impl Export {
    /// Returns the next part of the text, which is not empty; `None` at the end.
    ///
    /// # Errors
    /// If the store fails, or the form is not outside the trash any more: then the text is not whole.
    pub async fn next(&mut self) -> Result<Option<String>> {
        while self.text.is_empty() && !self.at_end {
            (self.text, self.after) = self.page().await?;
            self.at_end = self.after.is_none();
        }
        Ok(Some(std::mem::take(&mut self.text)).filter(|text| !text.is_empty()))
    }

    /// Returns the text of the next page, and where it ends. While the server is overloaded it waits: what was sent so far would be
    /// in vain.
    async fn page(&self) -> Result<(String, Option<SubmissionId>)> {
        for _ in 1..MAX_TRIES {
            match self.try_page().await {
                Err(error) if error.problem.code == Code::Overloaded => sleep(PAUSE).await,
                read => return read,
            }
        }
        self.try_page().await
    }

    async fn try_page(&self) -> Result<(String, Option<SubmissionId>)> {
        let (columns, version) = (self.columns.clone(), self.form.version);
        let page = self.read().await?;
        let page = page.ok_or_else(|| ApiError::not_found(Code::FormNotFound, &self.form.id.to_string()))?;
        let (rows, next) = (page.rows, page.next);
        let text = move || match columns {
            None => Ok(rows.iter().map(|row| SubmissionDetail::json(row) + "\n").collect()),
            // Later versions may have other columns.
            Some(columns) => {
                let shown = rows.iter().filter(|row| row.form_version <= version);
                Ok(shown.map(|row| record(row, &columns)).collect())
            }
        };
        Ok((self.session.run_here_or_job(self.columns.is_some(), text).await?, next))
    }

    async fn read(&self) -> Result<Option<SubmissionRows>> {
        let Self { session, filter, order, after, .. } = self;
        let form = self.form.reference();
        let _permit = match filter.reads_answers() {
            true => Some(session.job_permit().await?),
            false => None,
        };
        Ok(match self.uncounted {
            Some(status) => session.store.list_trashed_submissions(form, status, *after, PAGE).await?,
            None => session.store.list_submissions(form, filter, *order, *after, PAGE).await?,
        })
    }
}

/// Returns the first record, with the names of the columns.
fn header(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| column_name(&column[0])).collect();
    csv_record(FIRST_COLUMNS.into_iter().chain(names.iter().map(AsRef::as_ref)), ',')
}

fn record(submission: &Submission, columns: &[Column]) -> String {
    let answers = parse_object(&submission.answers).unwrap_or_default();
    let answers: HashMap<_, _> = answers.iter().map(|(key, answer, _)| (key, answer)).collect();
    let cell = |column: &Column| match column.iter().find_map(|id| answers.get(id)) {
        Some(answer @ (Value::Bool(_) | Value::Number(_))) => answer.to_string(),
        Some(answer) => escape_formula(value_text(answer)),
        None => String::new(),
    };
    let first = [submission.id.to_string(), submission.submitted_at().to_string()];
    let cells: Vec<_> = first.into_iter().chain(columns.iter().map(cell)).collect();
    csv_record(cells.iter().map(String::as_str), ',')
}

/// Returns the parameters of `query`, with each test of an answer as one.
fn parameters(query: &SubmissionQuery) -> BTreeMap<String, String> {
    let times = [("since", query.since), ("until", query.until)];
    let times = times.into_iter().filter_map(|(name, time)| Some((name.to_owned(), time?.to_string())));
    let text = query.text.iter().map(|text| ("q".to_owned(), text.clone()));
    let tests = query.answers.iter();
    let tests = tests.map(|(key, value)| (format!("{}.{}", key.question, key.operator), value.clone()));
    times.chain(text).chain(tests).collect()
}
