//! `forms deliveries`: commands on what is owed to integrations, one file each.

mod cancel;
mod list;
mod redeliver;
mod selection;
mod show;
mod stats;

use clap::{Args, Subcommand};

use crate::cli::commands::{Group, Run, block_on};
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;

use cancel::Cancel;
use list::List;
use redeliver::Redeliver;
use show::Show;
use stats::Stats;

/// List, repeat and cancel what is sent to integrations
#[derive(Debug, Args)]
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
pub struct Deliveries {
    #[command(subcommand)]
    command: DeliveriesCommand,
}

#[derive(Debug, Subcommand)]
enum DeliveriesCommand {
    List(List),
    Show(Show),
    Redeliver(Redeliver),
    Cancel(Cancel),
    Stats(Stats),
}

/// Columns of a delivery.
const DELIVERY: Columns = Columns::Fixed(&[
    "id",
    "status",
    "event",
    "form_id",
    "submission_id",
    "integration",
    "attempts",
    "next_attempt_at",
    "last_error",
    "created_at",
    "finished_at",
]);

/// Columns of an operation on all deliveries that match.
const COUNT: Columns = Columns::Fixed(&["count", "has_more"]);

impl Run for Deliveries {
    const ENTRY: (Group, &str) = (Group::Operate, "list, repeat, cancel");

    fn columns(&self) -> Columns {
        match &self.command {
            DeliveriesCommand::List(_) | DeliveriesCommand::Stats(_) => Columns::Dynamic,
            DeliveriesCommand::Show(show) => show.columns(),
            DeliveriesCommand::Redeliver(redeliver) if redeliver.names_none() => COUNT,
            DeliveriesCommand::Cancel(cancel) if cancel.names_none() => COUNT,
            DeliveriesCommand::Redeliver(_) | DeliveriesCommand::Cancel(_) => DELIVERY,
        }
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Deliveries {
    async fn execute(self, session: &Session) -> Result<(), CliError> {
        match self.command {
            DeliveriesCommand::List(list) => list.run(session).await,
            DeliveriesCommand::Show(show) => show.run(session).await,
            DeliveriesCommand::Redeliver(redeliver) => redeliver.run(session).await,
            DeliveriesCommand::Cancel(cancel) => cancel.run(session).await,
            DeliveriesCommand::Stats(stats) => stats.run(session).await,
        }
    }
}
