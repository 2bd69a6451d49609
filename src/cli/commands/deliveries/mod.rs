//! `forms deliveries`: commands on what is owed to integrations, one file each.

mod change;
mod list;
mod selection;
mod show;
mod stats;

use crate::api::DeliveryDetail;
use crate::cli::commands::{CliError, Columns, Session, subcommands};

use change::{Cancel, Redeliver};
use list::List;
use show::Show;
use stats::Stats;

subcommands! {
    /// List, repeat and cancel what is sent to integrations
    #[command(after_long_help = "\
A delivery is one event owed to one integration. Its status:

  pending    waits for its next attempt
  in_flight  is being attempted
  delivered  succeeded
  dead       failed for good: its retries are used up, or cannot help
  paused     waits until its integration is enabled, or its form is restored
  canceled   was canceled, or its form or integration was erased
  skipped    the integration's `when` did not hold

Examples:
  forms deliveries list --status dead,pending
  forms deliveries show dlv_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms deliveries redeliver --form lunch --status dead")]
    pub enum Deliveries {
        List(List),
        Show(Show),
        Redeliver(Redeliver),
        Cancel(Cancel),
        Stats(Stats),
    }
}

/// Columns of a delivery.
const DELIVERY: Columns = Columns::Fixed(&[
    "id",
    "status",
    "event",
    "form_id",
    "submission_id",
    "integration",
    "to",
    "attempts",
    "next_attempt_at",
    "last_error",
    "created_at",
    "finished_at",
]);

/// Returns the name of the integration, or its id if it was deleted.
fn integration_name(delivery: &DeliveryDetail) -> String {
    let integration = &delivery.integration;
    integration.name.clone().unwrap_or_else(|| integration.id.to_string())
}
