//! `forms responses list`: a column for each question.

use std::cell::Cell as Slot;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::SubmissionDetail;
use crate::cli::answers;
use crate::cli::args::count;
use crate::cli::exit::CliError;
use crate::cli::failure::grouped;
use crate::cli::filter;
use crate::cli::listing::{Listing, Want};
use crate::cli::session::Session;
use crate::cli::table::Cell;
use crate::client::{Received, SubmissionQuery};
use crate::clock::Timestamp;
use crate::domain::json::{self, Value};

/// List the answers to a form, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
Columns are id, submitted_at, and one for each question; with --trashed it is
deleted_at instead.

--where takes QUESTION=VALUE or QUESTION.OPERATOR=VALUE, and nothing that a
shell would take for its own. The operators are those of conditions: eq, ne, lt,
lte, gt, gte, in (VALUE,VALUE), includes (an option of several, or part of a
text), matches (a regular expression) and answered (true or false). Given
several times, all must hold.

Examples:
  forms responses list frm_7k2m9q4x1abz
  forms responses list frm_7k2m9q4x1abz --limit 10 -o json
  forms responses list frm_7k2m9q4x1abz --since 2026-11-01T00:00:00Z
  forms responses list frm_7k2m9q4x1abz --where score.gte=4 --where colour=red")]
pub(super) struct List {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Show so many at most
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only those of this time and later: 2026-11-20T09:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only those with this answer: colour=red, score.gte=4; may be repeated, each question and operator once
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    tests: Vec<filter::Test>,
    /// Those in the trash
    #[arg(long, conflicts_with_all = ["since", "until", "tests"])]
    trashed: bool,
    /// In CSV: leave text that a spreadsheet would run as a formula as it is
    #[arg(long)]
    raw: bool,
}

impl List {
    /// Lists the submissions.
    pub(super) async fn run(self, session: &Session) -> Result<(), CliError> {
        let (output, now) = (&*session.output, session.now());
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let listed = answers::questions(&form.questions);
        let ids = answers::ids(&listed);
        let want = Want::of(self.limit, self.all);
        let headers = headers(&ids, self.trashed);
        let Self { since, until, tests, trashed, raw, .. } = self;
        let query = SubmissionQuery { since, until, answers: tests, trashed };
        let mut pages = client.list_submissions(&self.form, &query, want.page(output.format))?;
        let others = Slot::new(false);
        let row = |submission: &Received<SubmissionDetail>| {
            let answers = json::parse(submission.answers.get()).unwrap_or(Value::Null);
            others.set(others.get() || has_others(&answers, &ids));
            cells(submission, &answers, &ids, now)
        };
        let listing = Listing { output, want, raw, headers, row: &row, body: &body };
        let in_flags = |error| filter::in_flags(error, &query.answers, &listed, &form.title);
        if let Some(shown) = listing.show(&mut pages).await.map_err(in_flags)? {
            // To count those in the trash, or those that a filter takes, the server would have to look at all.
            let count = Some(form.response_count).filter(|_| query.is_empty());
            let of = count.map(|count| format!(" of {}", grouped(count))).unwrap_or_default();
            output.say(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        if others.get() {
            output.warn("answers to questions that the form has no more are left out; -o jsonl has them");
        }
        Ok(())
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

/// Whether there are answers to other questions than those with these `ids`.
fn has_others(answers: &Value, ids: &[String]) -> bool {
    matches!(answers, Value::Object(members) if members.iter().any(|(key, _)| !ids.contains(key)))
}

/// The API's body around all submissions.
fn body(submissions: Vec<Value>) -> Value {
    let submissions = ("submissions".to_owned(), Value::Array(submissions));
    Value::Object(vec![submissions, ("next_cursor".to_owned(), Value::Null)])
}
