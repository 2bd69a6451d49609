//! `forms responses list`: one column per question.

use std::cell::Cell as Flag;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;

use crate::api::{SubmissionDetail, VersionView};
use crate::cli::commands::responses::filter;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers;
use crate::cli::input::values::count;
use crate::cli::input::values::moment;
use crate::cli::output::Format;
use crate::cli::output::destination::Destination;
use crate::cli::output::listing::{Column, ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::{Client, FormQuery, MAX_PAGE, Pages, ReceivedBody, SubmissionQuery};
use crate::clock::Timestamp;
use crate::domain::integration::row::{FIRST_COLUMNS, column_name_beside};
use crate::domain::json::{self, Value};

/// List the answers to a form, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
Columns are id, submitted_at, and one for each question; with --trashed it is
deleted_at instead. In CSV and XLSX, removed questions have columns too. The
column of a question that is named like one before is answers.id.

--where takes QUESTION=VALUE or QUESTION.OPERATOR=VALUE. The operators are those
of conditions: eq, ne, lt, lte, gt, gte, in (VALUE,VALUE), includes (one of
several options, or part of a text), matches (a regular expression) and answered
(true or false). If repeated, all must match.

Examples:
  forms responses list frm_7k2m9q4x1abz
  forms responses list frm_7k2m9q4x1abz --limit 10 -o json
  forms responses list frm_7k2m9q4x1abz --since 2026-11-01T00:00:00Z
  forms responses list frm_7k2m9q4x1abz -o xlsx --to answers.xlsx
  forms responses list frm_7k2m9q4x1abz --where score.gte=4 --where colour=red
  forms responses list --all-forms --search ann@example.com")]
pub(super) struct List {
    /// Form, by id or slug
    #[arg(required_unless_present = "all_forms", conflicts_with = "all_forms")]
    form: Option<String>,
    /// Search all forms
    #[arg(long, hide_short_help = true)]
    all_forms: bool,
    // Not flattened: clap cannot tell whether a flattened struct with another one in it is present.
    /// Maximum number to show
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only those since this time: 2026-11-20, 2026-11-20T09:00:00Z, or 1d for the last day
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<String>,
    /// Only those before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,
    /// Only those with this answer, such as colour=red or score.gte=4; repeat for more
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    clauses: Vec<filter::WhereClause>,
    /// Only those with this text in an answer, ignoring case
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Those in the trash
    #[arg(long, conflicts_with_all = ["since", "until", "clauses", "search"])]
    trashed: bool,
    /// Write to this file instead of stdout, once all of it has arrived; for any format but table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: Option<PathBuf>,
    /// In CSV: do not escape text that a spreadsheet would run as a formula
    #[arg(long, hide_short_help = true)]
    raw: bool,
}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    fn destination(&self) -> Destination<'_> {
        Destination::Export(self.to.as_deref())
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (output, now) = (&*session.output, session.now());
        let client = session.client().await?;
        let Some(form) = &self.form else { return self.list_all(session, &client).await };
        let form = client.get_form(form).await?;
        let id = form.id.to_string();
        let asked = answers::parse_questions(&form.questions);
        let mut keys = answers::answer_keys(&asked);
        if form.version > 1 && matches!(output.format, Format::Csv | Format::Xlsx) {
            add_removed_questions(client.list_versions(&id)?, &mut keys).await?;
        }
        let Self { limit, all, raw, trashed, .. } = self;
        let limit = ListLimit { limit, all };
        let query = self.query();
        let mut pages = client.list_submissions(&id, &query, limit.page_size(output.format))?;
        let has_others = Flag::new(false);
        let columns = columns(&keys, &has_others, trashed, now);
        // The server would have to scan all submissions to count trashed or filtered ones.
        let total = Some(form.response_count).filter(|_| query.is_empty());
        let listing = Listing::new(output, "submissions", none(&query), columns);
        let shown = listing.limit(limit).total(total).raw(raw).show(&mut pages).await;
        shown.map_err(|error| filter::in_flags(error, &query.answers, &asked, &form.title))?;
        if has_others.get() {
            output.warn("answers to removed questions are left out; -o csv, xlsx and jsonl have them");
        }
        Ok(())
    }
}

impl List {
    fn query(&self) -> SubmissionQuery {
        let Self { since, until, clauses, search, trashed, .. } = self;
        SubmissionQuery {
            since: since.clone(),
            until: until.clone(),
            q: search.clone(),
            answers: clauses.clone(),
            trashed: *trashed,
            ..SubmissionQuery::default()
        }
    }

    /// Lists the matching answers to all forms. A form without a question of the conditions has none.
    async fn list_all(&self, session: &Session, client: &Client) -> Result<(), CliError> {
        let (query, mut found) = (self.query(), Vec::new());
        let (mut impossible, mut searched) = (None, 0);
        for form in client.list_forms(&FormQuery::default(), MAX_PAGE).all().await? {
            match client.list_submissions(&form.id.to_string(), &query, MAX_PAGE)?.all().await {
                Err(error) if filter::can_never_match(&error) => impossible = Some(error),
                answers => {
                    searched += 1;
                    found.extend(answers?);
                }
            }
        }
        if let Some(error) = impossible.filter(|_| searched == 0) {
            return Err(filter::in_flags(error.into(), &query.answers, &[], "any form"));
        }
        let limit = ListLimit { limit: self.limit, all: self.all };
        show_of_forms(session, found, limit, self.raw, none(&query))
    }
}

/// The columns of submissions to several forms.
pub(in crate::cli::commands) const OF_FORMS: [&str; 4] =
    ["form_id", FIRST_COLUMNS[0], FIRST_COLUMNS[1], "answers"];

/// Shows submissions to several forms, or the message `none`.
pub(in crate::cli::commands) fn show_of_forms(
    session: &Session,
    mut found: Vec<ReceivedBody<SubmissionDetail>>,
    limit: ListLimit,
    raw: bool,
    none: &str,
) -> Result<(), CliError> {
    let (total, shown, now) = (found.len(), limit.max(session.output.format), session.now());
    if total > shown {
        found.truncate(shown);
        session.output.status(&format!("showing {shown} of {total} — use --all or --limit N"));
    }
    type Found = ReceivedBody<SubmissionDetail>;
    let [form_id, id, submitted_at, answers] = OF_FORMS;
    let columns = vec![
        Column::new(form_id, |one: &Found| Cell::text(one.form_id.to_string())),
        Column::new(id, |one: &Found| Cell::text(one.id.to_string())),
        Column::new(submitted_at, move |one: &Found| Cell::time(one.submitted_at, now)),
        Column::new(answers, |one: &Found| Cell::text(one.answers.get())),
    ];
    Listing::new(&session.output, "submissions", none, columns).raw(raw).show_items(found)
}

/// Adds to `keys` the questions of earlier versions, those removed last first.
async fn add_removed_questions(
    mut versions: Pages<'_, VersionView>,
    keys: &mut Vec<Vec<String>>,
) -> Result<(), CliError> {
    while let Some(page) = versions.next().await? {
        for version in page {
            let earlier = answers::answerable_ids(&answers::parse_questions(&version.questions));
            let is_known = |id: &String| keys.iter().flatten().any(|known| known == id);
            let removed: Vec<_> = earlier.into_iter().filter(|id| !is_known(id)).collect();
            keys.extend(removed.into_iter().map(|id| vec![id]));
        }
    }
    Ok(())
}

/// A submission with its answers, parsed once for all columns.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Response {
    submission: ReceivedBody<SubmissionDetail>,
    #[serde(skip)]
    answers: Value,
}

impl From<ReceivedBody<SubmissionDetail>> for Response {
    fn from(submission: ReceivedBody<SubmissionDetail>) -> Self {
        let answers = json::parse(submission.answers.get()).unwrap_or(Value::Null);
        Self { submission, answers }
    }
}

/// Returns the columns of responses with the questions that have these keys. The first one sets `has_others` if there are answers to other
/// questions.
pub(super) fn columns<'a>(
    questions: &'a [Vec<String>],
    has_others: &'a Flag<bool>,
    trashed: bool,
    now: Timestamp,
) -> Vec<Column<'a, Response>> {
    let moment = if trashed { "deleted_at" } else { FIRST_COLUMNS[1] };
    let first = [FIRST_COLUMNS[0], moment];
    let id = Column::new(first[0], |Response { submission, answers }: &Response| {
        let Value::Object(answers) = answers else { return Cell::text(submission.id.to_string()) };
        has_others.set(
            has_others.get()
                || answers.iter().any(|(key, _)| !questions.iter().any(|keys| keys.contains(key))),
        );
        Cell::text(submission.id.to_string())
    });
    let time = Column::new(moment, move |Response { submission, .. }: &Response| {
        Cell::time(submission.deleted_at.unwrap_or(submission.submitted_at), now)
    });
    let answer = |keys: &'a Vec<String>| {
        let name = column_name_beside(&first, &keys[0]);
        Column::new(name, move |response: &Response| Cell::of_answer(&response.answers, keys))
    };
    [id, time].into_iter().chain(questions.iter().map(answer)).collect()
}

fn none(query: &SubmissionQuery) -> &'static str {
    match query {
        query if query.is_empty() => "no responses yet",
        query if query.trashed => "no responses in the trash",
        _ => "no responses match",
    }
}
