//! `forms deliveries redeliver` and `cancel`.

use std::mem;

use clap::Args;
use serde::Serialize;

use crate::api::{DeliveryCount, DeliveryDetail};
use crate::cli::commands::batch::for_each;
use crate::cli::commands::deliveries::selection::SelectionFlags;
use crate::cli::commands::deliveries::{DELIVERY, integration_name};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::target::Target;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::Output;
use crate::cli::output::humanize::grouped;
use crate::client::ReceivedBody;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::rate::Rate;

/// The deliveries to change: by id, or all that flags select.
#[derive(Debug, Args, Serialize)]
pub(super) struct Which {
    /// Deliveries, by id
    #[arg(value_name = "ID", required_unless_present = "SelectionFlags", conflicts_with = "SelectionFlags")]
    #[serde(skip)]
    deliveries: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    selection: SelectionFlags,
    /// Only count the selected ones
    #[arg(long, conflicts_with = "deliveries")]
    dry_run: bool,
}

/// Send deliveries again
#[derive(Debug, Args, Serialize)]
#[command(after_long_help = "\
Takes ids, or flags that select deliveries; of those, the dead ones unless
--status names others. A webhook is repeated with the same webhook-id and the
same body, so that its receiver can ignore what it has. Prints the id of each,
or how many were selected.

Examples:
  forms deliveries redeliver dlv_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms deliveries redeliver --form lunch --status dead --dry-run
  forms deliveries redeliver --form lunch --status dead --rate 10/s")]
pub struct Redeliver {
    #[command(flatten)]
    #[serde(flatten)]
    which: Which,
    /// How fast, such as 10/s; without it, at once
    #[arg(long, conflicts_with = "deliveries", value_parser = rate)]
    rate: Option<String>,
}

/// Cancel pending deliveries
#[derive(Debug, Args)]
#[command(after_long_help = "\
Takes ids, or flags that select deliveries. Deliveries selected by flags are
counted, and canceled after a confirmation; without a terminal, --yes is
required. A canceled delivery can be sent again. Prints the id of each, or how
many were canceled.

Examples:
  forms deliveries cancel dlv_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms deliveries cancel --form lunch --integration webhook --dry-run
  forms deliveries cancel --form lunch --integration webhook --yes")]
pub struct Cancel {
    #[command(flatten)]
    which: Which,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Parses a rate, which is sent as text.
fn rate(text: &str) -> Result<String, String> {
    let parsed: Result<Rate, _> = text.parse();
    parsed
        .map(|_| text.to_owned())
        .map_err(|_invalid| format!("must be a rate such as \"10/s\", found `{text}`"))
}

impl Run for Redeliver {
    fn columns(&self) -> Columns {
        self.which.columns()
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (which, output) = (&self.which, &session.output);
        let is_local = matches!(session.target()?, Target::Data(_));
        if which.deliveries.is_empty() {
            let done = match (which.dry_run, is_local) {
                (true, _) => "would be sent again",
                (false, true) => "will be sent again once a server runs",
                (false, false) => {
                    "will be sent again; those of a disabled or paused integration once it is enabled"
                }
            };
            let counted = session.client().await?.change_deliveries(&self, "redeliver").await?;
            return report_count(output, &counted, done);
        }
        let report = |sent: &DeliveryDetail| match sent.status.known() {
            Some(DeliveryStatus::Paused) => output.status(&waits_for_integration(session, sent)),
            _ if is_local => output.status("It will be sent again once a server runs"),
            _ => output.success("Sending it again"),
        };
        which.change_each(session, "redeliver", report).await
    }
}

/// Returns that the integration of `delivery` is disabled or paused, with the command that enables it.
fn waits_for_integration(session: &Session, delivery: &DeliveryDetail) -> String {
    let (form, prefix) = (delivery.form_id, session.command_prefix());
    let name = integration_name(delivery);
    format!("Its integration is disabled or paused. Enable it: {prefix} integrations enable {form} {name}")
}

impl Run for Cancel {
    fn columns(&self) -> Columns {
        self.which.columns()
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { mut which, yes } = self;
        let output = &session.output;
        if !which.deliveries.is_empty() {
            return which.change_each(session, "cancel", |_| output.success("Canceled")).await;
        }
        if which.dry_run || !yes {
            let only_counts = mem::replace(&mut which.dry_run, true);
            let counted = session.client().await?.change_deliveries(&which, "cancel").await?;
            if only_counts || counted.count == 0 {
                return report_count(output, &counted, "would be canceled");
            }
            session.confirm(&format!("cancel {}", count(&counted)), ConfirmBy::Yes).await?;
            which.dry_run = false;
        }
        let counted = session.client().await?.change_deliveries(&which, "cancel").await?;
        report_count(output, &counted, "canceled")
    }
}

impl Which {
    fn columns(&self) -> Columns {
        if self.deliveries.is_empty() { Columns::Fixed(&["count", "has_more"]) } else { DELIVERY }
    }

    /// Changes each of the deliveries that are named, prints its id and reports what was done.
    async fn change_each(
        &self,
        session: &Session,
        action: &str,
        report: impl Fn(&DeliveryDetail),
    ) -> Result<(), CliError> {
        let client = session.client().await?;
        for_each(session, &self.deliveries, async |id| {
            let changed = client.act::<DeliveryDetail>(&["deliveries", id, action]).await?;
            session.output.object(&changed, || format!("{}\n", changed.id))?;
            report(&changed);
            Ok(())
        })
        .await
    }
}

/// Prints how many deliveries were changed, and what was `done`.
fn report_count(output: &Output, counted: &ReceivedBody<DeliveryCount>, done: &str) -> Result<(), CliError> {
    output.object(counted, || format!("{}\n", counted.count))?;
    output.status(&format!("{} {done}", count(counted)));
    if counted.has_more {
        output.status("more match: repeat the command for the others");
    }
    Ok(())
}

fn count(counted: &DeliveryCount) -> String {
    match counted.count {
        1 => "1 delivery".to_owned(),
        count => format!("{} deliveries", grouped(count)),
    }
}
