//! `forms deliveries stats`.

use clap::Args;

use crate::api::DeliveryTypeStats;
use crate::cli::commands::Run;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::listing::{ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::ReceivedBody;
use crate::clock::Timestamp;
use crate::domain::json::Value;

/// Count deliveries by type of integration
#[derive(Debug, Args)]
#[command(after_long_help = "\
A row for each type: how many deliveries wait (pending, in_flight, paused), how
many are dead, since when the oldest is due, and how many were delivered within
24 hours.

Examples:
  forms deliveries stats
  forms deliveries stats -o json | jq '.types[] | select(.dead > 0)'")]
pub(super) struct Stats {}

/// All columns, by their API names.
const COLUMNS: [&str; 7] =
    ["type", "pending", "in_flight", "paused", "dead", "oldest_due_at", "delivered_24h"];

impl Run for Stats {
    fn columns(&self) -> Columns {
        Columns::Dynamic
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let types = session.client().await?.delivery_stats().await?;
        let now = session.now();
        let row = |one: &ReceivedBody<DeliveryTypeStats>| cells(one, now).into();
        let body = |list| Value::Object(vec![("types".to_owned(), Value::Array(list))]);
        let listing = Listing {
            output: &session.output,
            list_limit: ListLimit::ALL,
            raw: false,
            headers: COLUMNS.map(str::to_owned).into(),
            optional: "oldest_due_at",
            none: "no integrations".to_owned(),
            row: &row,
            body: &body,
        };
        listing.show_items(&types)
    }
}

fn cells(stats: &DeliveryTypeStats, now: Timestamp) -> [Cell; COLUMNS.len()] {
    let unset = || Cell::text("");
    let dead = Cell::number(stats.dead);
    [
        Cell::text(&*stats.kind),
        Cell::number(stats.pending),
        Cell::number(stats.in_flight),
        Cell::number(stats.paused),
        if stats.dead > 0 { dead.with_colour(31) } else { dead },
        stats.oldest_due_at.map_or_else(unset, |due| Cell::time(due, now)),
        Cell::number(stats.delivered_24h),
    ]
}
