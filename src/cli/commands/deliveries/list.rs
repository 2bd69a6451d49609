//! `forms deliveries list`.

use clap::Args;

use crate::api::DeliveryDetail;
use crate::cli::commands::deliveries::integration_name;
use crate::cli::commands::deliveries::selection::SelectionFlags;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::listing::{self, ListLimit, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::client::ReceivedBody;
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;

/// List deliveries, newest event first
#[derive(Debug, Args)]
#[command(after_long_help = "\
The columns are id, status, created_at, next_attempt_at, error, form_id,
integration, attempts and event; --columns can choose submission_id and
finished_at too.

Examples:
  forms deliveries list --form lunch --status dead,pending
  forms deliveries list --form lunch --integration webhook --since 2h
  forms deliveries list --status dead -o jsonl | jq -r .last_error.message")]
pub struct List {
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    limit: ListLimit,
}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (output, client) = (&*session.output, session.client().await?);
        let page_size = self.limit.page_size(output.format);
        let mut pages = client.list_deliveries(&self.selection, page_size);
        let is_filtered = self.selection != SelectionFlags::default();
        let none = if is_filtered { "no deliveries match" } else { "no deliveries yet" };
        let columns = columns(session.now());
        let listing = Listing::new(output, "deliveries", none, columns).limit(self.limit);
        listing.show(&mut pages).await
    }
}

type Column<'a> = listing::Column<'a, ReceivedBody<DeliveryDetail>>;

fn columns<'a>(now: Timestamp) -> Vec<Column<'a>> {
    let time = move |time: Option<Timestamp>| time.map_or_else(Cell::empty, |time| Cell::time(time, now));
    let error = |delivery: &DeliveryDetail| delivery.last_error.as_ref().map(|error| error.message.clone());
    vec![
        Column::new("id", |delivery| Cell::text(delivery.id.to_string())),
        Column::new("status", |delivery| status_cell(delivery)),
        Column::new("created_at", move |delivery| Cell::time(delivery.created_at, now)),
        Column::new("next_attempt_at", move |delivery| {
            delivery.next_attempt_at.map_or_else(Cell::empty, |due| due_cell(due, now))
        }),
        Column::new("error", move |delivery| error(delivery).map_or_else(Cell::empty, Cell::text)),
        Column::new("form_id", |delivery| Cell::text(delivery.form_id.to_string())),
        Column::new("integration", move |delivery| Cell::text(integration_name(delivery))),
        Column::new("attempts", |delivery| Cell::number(delivery.attempts)),
        Column::new("event", |delivery| Cell::text(delivery.event.event_type.to_string())),
        Column::new("submission_id", |delivery| {
            delivery.submission_id.map_or_else(Cell::empty, |id| Cell::text(id.to_string()))
        })
        .if_chosen(),
        Column::new("finished_at", move |delivery| time(delivery.finished_at)).if_chosen(),
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
        Some(DeliveryStatus::Delivered) => cell.with_colour(Color::DarkGreen),
        Some(DeliveryStatus::Dead) => cell.with_colour(Color::DarkRed),
        Some(DeliveryStatus::Pending | DeliveryStatus::Paused | DeliveryStatus::InFlight) | None => {
            cell.with_colour(Color::DarkYellow)
        }
        Some(DeliveryStatus::Canceled | DeliveryStatus::Skipped) => cell,
    }
}
