//! `forms deliveries stats`.

use clap::Args;

use crate::api::DeliveryTypeStats;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::client::ReceivedBody;

/// Count deliveries by type of integration
#[derive(Debug, Args)]
#[command(after_long_help = "\
A row for each type: how many deliveries wait (pending, in_flight, paused), how
many are dead, since when the oldest is due, and how many were delivered within
24 hours.

Examples:
  forms deliveries stats
  forms deliveries stats -o json | jq '.types[] | select(.dead > 0)'")]
pub struct Stats {}

type Column<'a> = listing::Column<'a, ReceivedBody<DeliveryTypeStats>>;

impl Run for Stats {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let types = session.client().await?.list(&["deliveries/stats"], "types").await?;
        let now = session.now();
        let columns = vec![
            Column::new("type", |stats| Cell::text(&*stats.kind)),
            Column::new("pending", |stats| Cell::number(stats.pending)),
            Column::new("in_flight", |stats| Cell::number(stats.in_flight)),
            Column::new("paused", |stats| Cell::number(stats.paused)),
            Column::new("dead", |stats| match stats.dead {
                0 => Cell::number(0),
                dead => Cell::number(dead).with_colour(Color::DarkRed),
            }),
            Column::new("oldest_due_at", |stats| {
                stats.oldest_due_at.map_or_else(Cell::empty, |due| Cell::time(due, now))
            }),
            Column::new("delivered_24h", |stats| Cell::number(stats.delivered_24h)),
        ];
        Listing::new(&session.output, "types", "no integrations", columns).show_items(types)
    }
}
