//! `forms list`.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap_complete::engine::ArgValueCandidates;

use crate::api::FormEntry;
use crate::cli::commands::Run;
use crate::cli::commands::completions::candidates;
use crate::cli::connection::session::Session;
use crate::cli::input::values::count;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;
use crate::cli::output::listing::{ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::{ClientError, FormQuery, ReceivedBody};
use crate::clock::Timestamp;
use crate::domain::form::FormStatus;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::json::Value;
use crate::domain::validation::violation::Violation;

/// List forms
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Newest first. The columns are id, status, response_count, updated_at and title,
on a terminal also slug; --columns can choose slug, created_at and
accepting_reason too: why a published form does not accept answers now. A
terminal shows it as the status, and --status accepts it. For forms in the
trash the time is deleted_at.

Examples:
  forms list
  forms list --status published
  forms list --columns slug,accepting_reason
  forms list --trashed
  forms list -o jsonl | jq -r .title"
)]
pub struct List {
    /// Maximum number to show
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only those with this status: draft, published, closed, full, expired, not-open-yet
    #[arg(long, value_name = "STATUS", value_parser = NonEmptyStringValueParser::new().map(|text| status_name(&text)))]
    #[arg(add = ArgValueCandidates::new(|| candidates(status_names().into_iter().map(str::to_owned))))]
    status: Option<String>,
    /// Those in the trash
    #[arg(long)]
    trashed: bool,
}

/// Why a published form does not accept answers; `--status` accepts these too.
const REASONS: [AcceptingReason; 4] =
    [AcceptingReason::Closed, AcceptingReason::Full, AcceptingReason::Expired, AcceptingReason::NotOpenYet];

/// Converts `Not open yet` and `not-open-yet` to the API's `not_open_yet`.
fn status_name(text: &str) -> String {
    text.trim().to_lowercase().replace([' ', '-'], "_")
}

/// Returns the statuses that this version knows.
fn status_names() -> Vec<&'static str> {
    let statuses = [FormStatus::Draft.name(), FormStatus::Published.name()];
    statuses.into_iter().chain(REASONS.map(AcceptingReason::name)).collect()
}

/// Turns the server's refusal of `status` into a usage error that lists the valid ones.
fn explain_refusal(error: CliError, status: &str) -> CliError {
    let CliError::Client { error: ClientError::Problem(problem), .. } = &error else { return error };
    let is_status = |violation: &&Violation| violation.pointer == "/status";
    let Some(refused) = problem.errors.iter().find(is_status) else { return error };
    let mut names: Vec<&str> = status_names();
    let newer = refused.allowed.iter().map(String::as_str).filter(|name| !names.contains(name));
    let newer: Vec<_> = newer.collect();
    names.extend(newer);
    CliError::usage(format!("invalid --status `{status}`: expected one of: {}", names.join(", ")))
}

impl Run for List {
    fn columns(&self) -> Columns {
        Columns::Dynamic
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let output = &*session.output;
        let list_limit = ListLimit::from_flags(self.limit, self.all, output.format);
        let is_reason = |status: &&str| REASONS.iter().any(|reason| reason.name() == *status);
        let accepting_reason = self.status.as_deref().filter(is_reason);
        let status = self.status.as_deref().filter(|status| !is_reason(status));
        let query =
            FormQuery { status, accepting_reason, trashed: self.trashed, count: list_limit.is_default };
        let mut pages = client.list_forms(&query, list_limit.page_size());
        let now = session.now();
        // The other columns are only shown if chosen.
        let count = if output.columns.is_empty() { DEFAULT_COLUMNS } else { COLUMNS.len() };
        let row = |form: &ReceivedBody<FormEntry>| cells(form, now).into_iter().take(count).collect();
        let moment = if self.trashed { "deleted_at" } else { "updated_at" };
        let name = |name: &&str| if *name == "updated_at" { moment } else { name }.to_owned();
        let headers = COLUMNS.iter().take(count).map(name).collect();
        let body = |forms| Value::Object(vec![("forms".to_owned(), Value::Array(forms))]);
        let (optional, none) = ("slug", self.none(session));
        let listing =
            Listing { output, list_limit, raw: false, headers, optional, none, row: &row, body: &body };
        let shown = listing.show(&mut pages).await.map_err(|error| match &self.status {
            Some(status) => explain_refusal(error, status),
            None => error,
        })?;
        if let Some(shown) = shown {
            let of = pages.total().map(|total| format!(" of {}", grouped(total)));
            let of = of.unwrap_or_default();
            output.status(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        Ok(())
    }
}

impl List {
    fn none(&self, session: &Session) -> String {
        match self.status {
            Some(_) => "no forms match".to_owned(),
            None if self.trashed => "no forms in the trash".to_owned(),
            None => format!("no forms yet: {} create", session.command_prefix()),
        }
    }
}

/// All columns, by their API names.
const COLUMNS: [&str; 8] =
    ["id", "status", "response_count", "updated_at", "title", "slug", "created_at", "accepting_reason"];

/// Number of columns shown unless others are chosen.
const DEFAULT_COLUMNS: usize = 6;

fn cells(form: &FormEntry, now: Timestamp) -> [Cell; COLUMNS.len()] {
    let shut = form.accepting_reason.as_ref().map(ToString::to_string);
    let status = form.status.to_string();
    [
        Cell::text(form.id.to_string()),
        Cell::text(&*status)
            .with_display(shut.as_ref().unwrap_or(&status).replace('_', " "))
            .with_colour(colour(form)),
        Cell::number(form.response_count),
        Cell::time(form.deleted_at.unwrap_or(form.updated_at), now),
        Cell::text(&*form.title),
        Cell::text(form.slug.as_deref().unwrap_or_default()),
        Cell::time(form.created_at, now),
        Cell::text(shut.unwrap_or_default()),
    ]
}

/// Returns green for a form that accepts answers, yellow for a draft, red for a published form that does not.
fn colour(form: &FormEntry) -> u8 {
    match (form.status.known(), &form.accepting_reason) {
        (Some(FormStatus::Published), None) => 32,
        (Some(FormStatus::Published), Some(_)) => 31,
        (Some(FormStatus::Draft) | None, _) => 33,
    }
}
