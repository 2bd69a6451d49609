//! `forms responses list`: one column per question.

use std::cell::Cell as Slot;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};

use crate::api::SubmissionDetail;
use crate::cli::commands::Run;
use crate::cli::commands::responses::filter;
use crate::cli::connection::session::Session;
use crate::cli::input::answers;
use crate::cli::input::moment::moment;
use crate::cli::input::values::count;
use crate::cli::output::Format;
use crate::cli::output::columns;
use crate::cli::output::columns::Columns;
use crate::cli::output::destination::Destination;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;
use crate::cli::output::listing::{ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::{Pages, ReceivedBody, SubmissionQuery};
use crate::clock::Timestamp;
use crate::domain::json::{self, Value};

/// List the answers to a form, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
Columns are id, submitted_at, and one for each question; with --trashed it is
deleted_at instead.

--where takes QUESTION=VALUE or QUESTION.OPERATOR=VALUE. The operators are those
of conditions: eq, ne, lt, lte, gt, gte, in (VALUE,VALUE), includes (one of
several options, or part of a text), matches (a regular expression) and answered
(true or false). If repeated, all must match.

Examples:
  forms responses list frm_7k2m9q4x1abz
  forms responses list frm_7k2m9q4x1abz --limit 10 -o json
  forms responses list frm_7k2m9q4x1abz --since 2026-11-01T00:00:00Z
  forms responses list frm_7k2m9q4x1abz -o xlsx --to answers.xlsx
  forms responses list frm_7k2m9q4x1abz --where score.gte=4 --where colour=red")]
pub(super) struct List {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Maximum number to show
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only those since this time: 2026-11-20, 2026-11-20T09:00:00Z, or 1d for the last day
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only those with this answer, such as colour=red or score.gte=4; repeat for more
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    clauses: Vec<filter::WhereClause>,
    /// Those in the trash
    #[arg(long, conflicts_with_all = ["since", "until", "clauses"])]
    trashed: bool,
    /// Write to this file instead of stdout, once all of it has arrived; for any format but table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: Option<PathBuf>,
    /// In CSV: do not escape text that a spreadsheet would run as a formula
    #[arg(long)]
    raw: bool,
}

impl Run for List {
    fn columns(&self) -> Columns {
        Columns::Dynamic
    }

    fn destination(&self) -> Destination<'_> {
        Destination::Export(self.to.as_deref())
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (output, now) = (&*session.output, session.now());
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let listed = answers::parse_questions(&form.questions);
        let mut ids = answers::answerable_ids(&listed);
        let list_limit = ListLimit::from_flags(self.limit, self.all, output.format);
        let Self { since, until, clauses, trashed, raw, .. } = self;
        let moment = |time: Option<String>| time.map(|time| moment(&time, now)).transpose();
        let (since, until) = (moment(since)?, moment(until)?);
        let query = SubmissionQuery { since, until, answers: clauses, trashed };
        let in_flags = |error| filter::in_flags(error, &query.answers, &listed, &form.title);
        // The header of CSV and XLSX comes first: if questions have changed, removed ones must be found before.
        let is_known =
            |ids: &[String]| columns::resolve_names(&output.columns, &headers(ids, trashed)).is_ok();
        let is_export = matches!(output.format, Format::Csv | Format::Xlsx);
        if is_export && form.version > 1 && (output.columns.is_empty() || !is_known(&ids)) {
            let pages = client.list_submissions(&self.form, &query, list_limit.page_size())?;
            let removed = find_removed_questions(pages, list_limit.max, &ids).await.map_err(in_flags)?;
            ids.extend(removed);
        }
        let headers = headers(&ids, trashed);
        let mut pages = client.list_submissions(&self.form, &query, list_limit.page_size())?;
        let others = Slot::new(false);
        let row = |submission: &ReceivedBody<SubmissionDetail>| {
            let answers = json::parse(submission.answers.get()).unwrap_or(Value::Null);
            others.set(others.get() || has_others(&answers, &ids));
            cells(submission, &answers, &ids, now)
        };
        let none = none(&query).to_owned();
        let listing =
            Listing { output, list_limit, raw, headers, optional: "", none, row: &row, body: &body };
        if let Some(shown) = listing.show(&mut pages).await.map_err(in_flags)? {
            // The server would have to scan all submissions to count trashed or filtered ones.
            let count = Some(form.response_count).filter(|_| query.is_empty());
            let of = count.map(|count| format!(" of {}", grouped(count))).unwrap_or_default();
            output.status(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        if others.get() {
            output.warn("answers to removed questions are left out; -o csv, xlsx and jsonl have them");
        }
        Ok(())
    }
}

impl List {}

/// Finds removed questions: those with answers in the first `limit` submissions of `pages` that are not in `ids`.
async fn find_removed_questions(
    mut pages: Pages<'_, ReceivedBody<SubmissionDetail>>,
    mut limit: usize,
    ids: &[String],
) -> Result<Vec<String>, CliError> {
    let mut removed = Vec::new();
    while limit > 0
        && let Some(page) = pages.next().await?
    {
        limit = limit.saturating_sub(page.len());
        for submission in page {
            let Ok(Value::Object(answers)) = json::parse(submission.answers.get()) else { continue };
            let keys = answers.into_iter().map(|(key, _)| key).filter(|key| !ids.contains(key));
            for key in keys {
                if !removed.contains(&key) {
                    removed.push(key);
                }
            }
        }
    }
    Ok(removed)
}

fn none(query: &SubmissionQuery) -> &'static str {
    match query {
        query if query.is_empty() => "no responses yet",
        query if query.trashed => "no responses in the trash",
        _ => "no responses match",
    }
}

fn headers(ids: &[String], trashed: bool) -> Vec<String> {
    let moment = if trashed { "deleted_at" } else { "submitted_at" };
    ["id", moment].into_iter().map(str::to_owned).chain(ids.iter().cloned()).collect()
}

fn cells(submission: &SubmissionDetail, answers: &Value, ids: &[String], now: Timestamp) -> Vec<Cell> {
    let moment = submission.deleted_at.unwrap_or(submission.submitted_at);
    let fixed = [Cell::text(submission.id.to_string()), Cell::time(moment, now)];
    fixed.into_iter().chain(ids.iter().map(|id| Cell::member(answers, id))).collect()
}

/// Whether there are answers to questions other than `ids`.
fn has_others(answers: &Value, ids: &[String]) -> bool {
    matches!(answers, Value::Object(members) if members.iter().any(|(key, _)| !ids.contains(key)))
}

/// Wraps all submissions in the API's body; without a cursor, since the list is complete.
fn body(submissions: Vec<Value>) -> Value {
    Value::Object(vec![("submissions".to_owned(), Value::Array(submissions))])
}
