//! `forms list`.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap_complete::engine::ArgValueCandidates;

use crate::api::FormEntry;
use crate::cli::commands::completions::candidates;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::listing::{self, ListLimit, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::client::{ClientError, FormQuery, ReceivedBody};
use crate::clock::Timestamp;
use crate::domain::form::FormStatus;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::validation::violation::Violation;

/// List forms
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Newest first. The columns are id, status, response_count, updated_at, title and
slug; a table in a pipe is without slug. --columns can choose created_at and
accepting_reason too. The status of a published form that does not accept
answers is the reason, such as closed or not_open_yet; --status accepts it. For
forms in the trash the time is deleted_at.

Examples:
  forms list
  forms list --status published
  forms list --columns slug,accepting_reason
  forms list --trashed
  forms list -o jsonl | jq -r .title"
)]
pub struct List {
    #[command(flatten)]
    limit: ListLimit,
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
    let newer = refused.allowed.iter().map(String::as_str).filter(|name| !status_names().contains(name));
    let names: Vec<_> = status_names().into_iter().chain(newer).collect();
    CliError::usage(format!("invalid --status `{status}`: expected one of: {}", names.join(", ")))
}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let (output, limit) = (&*session.output, self.limit);
        let is_reason = |status: &&str| REASONS.iter().any(|reason| reason.name() == *status);
        let accepting_reason = self.status.as_deref().filter(is_reason);
        let status = self.status.as_deref().filter(|status| !is_reason(status));
        let count = limit.is_default(output.format);
        let query = FormQuery { status, accepting_reason, trashed: self.trashed, count };
        let mut pages = client.list_forms(&query, limit.page_size(output.format));
        let columns = columns(self.trashed, session.now());
        let listing = Listing::new(output, "forms", self.none(session), columns).limit(limit);
        listing.show(&mut pages).await.map_err(|error| match &self.status {
            Some(status) => explain_refusal(error, status),
            None => error,
        })
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

type Column<'a> = listing::Column<'a, ReceivedBody<FormEntry>>;

fn columns<'a>(trashed: bool, now: Timestamp) -> Vec<Column<'a>> {
    let reason = |form: &FormEntry| form.accepting_reason.as_ref().map(ToString::to_string);
    let status = move |form: &FormEntry| match form.status.known() {
        Some(FormStatus::Published) => reason(form).unwrap_or_else(|| form.status.to_string()),
        Some(FormStatus::Draft) | None => form.status.to_string(),
    };
    let moment = if trashed { "deleted_at" } else { "updated_at" };
    vec![
        Column::new("id", |form| Cell::text(form.id.to_string())),
        Column::new("status", move |form| Cell::text(status(form)).with_colour(colour(form))),
        Column::new("response_count", |form| Cell::number(form.response_count)),
        Column::new(moment, move |form| Cell::time(form.deleted_at.unwrap_or(form.updated_at), now)),
        Column::new("title", |form| Cell::text(&*form.title)),
        Column::new("slug", |form| Cell::text(form.slug.as_deref().unwrap_or_default())).outside_pipes(),
        Column::new("created_at", move |form| Cell::time(form.created_at, now)).if_chosen(),
        Column::new("accepting_reason", move |form| Cell::text(reason(form).unwrap_or_default())).if_chosen(),
    ]
}

/// Returns green for a form that accepts answers, yellow for a draft, red for a published form that does not.
fn colour(form: &FormEntry) -> Color {
    match (form.status.known(), &form.accepting_reason) {
        (Some(FormStatus::Published), None) => Color::DarkGreen,
        (Some(FormStatus::Published), Some(_)) => Color::DarkRed,
        (Some(FormStatus::Draft) | None, _) => Color::DarkYellow,
    }
}
