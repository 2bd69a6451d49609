//! `forms deliveries list`.

use clap::Args;

use crate::api::DeliveryDetail;
use crate::cli::commands::Run;
use crate::cli::commands::deliveries::selection::SelectionFlags;
use crate::cli::connection::session::Session;
use crate::cli::input::values::count;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::listing::{ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::ReceivedBody;
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::json::Value;

/// List deliveries, newest event first
#[derive(Debug, Args)]
#[command(after_long_help = "\
The columns are id, integration, status, attempts and error; in a pipe and in
CSV also event, created_at and next_attempt_at. --columns can choose those, and
form_id, submission_id and finished_at.

Examples:
  forms deliveries list --form lunch --status dead,pending
  forms deliveries list --form lunch --integration webhook --since 2h
  forms deliveries list --status dead -o jsonl | jq -r .last_error.message")]
pub(super) struct List {
    #[command(flatten)]
    selection: SelectionFlags,
    /// Maximum number to show
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
}

/// All columns, by their API names.
const COLUMNS: [&str; 11] = [
    "id",
    "integration",
    "status",
    "attempts",
    "error",
    "event",
    "created_at",
    "next_attempt_at",
    "form_id",
    "submission_id",
    "finished_at",
];

/// Number of columns shown unless others are chosen.
const DEFAULT_COLUMNS: usize = 8;

/// Number of columns that a terminal shows: more would cut the errors in 80 columns.
const TERMINAL_COLUMNS: usize = 5;

impl Run for List {
    fn columns(&self) -> Columns {
        Columns::Dynamic
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let output = &*session.output;
        let (client, now) = (session.client().await?, session.now());
        let list_limit = ListLimit::from_flags(self.limit, self.all, output.format);
        let mut pages = client.list_deliveries(&self.selection.selection(session)?, list_limit.page_size());
        let count = match output.columns.is_empty() {
            true if output.truncates_rows() => TERMINAL_COLUMNS,
            true => DEFAULT_COLUMNS,
            false => COLUMNS.len(),
        };
        let row = |one: &ReceivedBody<DeliveryDetail>| cells(one, now).into_iter().take(count).collect();
        let body = |list| Value::Object(vec![("deliveries".to_owned(), Value::Array(list))]);
        let listing = Listing {
            output,
            list_limit,
            raw: false,
            headers: COLUMNS.iter().take(count).map(ToString::to_string).collect(),
            optional: "error",
            none: if self.selection.is_empty() { "no deliveries yet" } else { "no deliveries match" }
                .to_owned(),
            row: &row,
            body: &body,
        };
        let shown = listing.show(&mut pages).await;
        if let Some(shown) = shown.map_err(|error| self.selection.explain(session, error))? {
            output.status(&format!("showing {shown} — use --all or --limit N"));
        }
        Ok(())
    }
}

fn cells(delivery: &DeliveryDetail, now: Timestamp) -> [Cell; COLUMNS.len()] {
    let unset = || Cell::text("");
    let time = |time: Option<Timestamp>| time.map_or_else(unset, |time| Cell::time(time, now));
    let integration = &delivery.integration;
    let name = integration.name.clone().unwrap_or_else(|| integration.id.to_string());
    let error = delivery.last_error.as_ref().map(|error| error.message.clone());
    [
        Cell::text(delivery.id.to_string()),
        Cell::text(name),
        status_cell(delivery),
        Cell::number(delivery.attempts),
        error.map_or_else(unset, Cell::text),
        Cell::text(delivery.event.event_type.to_string()),
        Cell::time(delivery.created_at, now),
        delivery.next_attempt_at.map_or_else(unset, |due| due_cell(due, now)),
        Cell::text(delivery.form_id.to_string()),
        delivery.submission_id.map_or_else(unset, |id| Cell::text(id.to_string())),
        time(delivery.finished_at),
    ]
}

/// Returns the cell of a moment that is to come: `in 5 min`.
fn due_cell(due: Timestamp, now: Timestamp) -> Cell {
    let seconds = (due.millis() - now.millis()) / 1_000;
    Cell::number(due).with_display(match seconds {
        ..=0 => "now".to_owned(),
        1..60 => format!("in {seconds} s"),
        60..3_600 => format!("in {} min", seconds / 60),
        _ => format!("in {} h", seconds / 3_600),
    })
}

/// Returns the status, which is never cut: green if delivered, red if dead, yellow if it waits.
pub(super) fn status_cell(delivery: &DeliveryDetail) -> Cell {
    let status = &delivery.status;
    let cell = Cell::number(status).with_display(status.to_string().replace('_', " "));
    match status.known() {
        Some(DeliveryStatus::Delivered) => cell.with_colour(32),
        Some(DeliveryStatus::Dead) => cell.with_colour(31),
        Some(DeliveryStatus::Pending | DeliveryStatus::Paused | DeliveryStatus::InFlight) | None => {
            cell.with_colour(33)
        }
        Some(DeliveryStatus::Canceled | DeliveryStatus::Skipped) => cell,
    }
}
