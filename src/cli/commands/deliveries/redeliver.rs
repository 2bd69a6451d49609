//! `forms deliveries redeliver`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::DeliveryDetail;
use crate::cli::commands::Run;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::deliveries::COUNT;
use crate::cli::commands::deliveries::DELIVERY;
use crate::cli::commands::deliveries::selection::SelectionFlags;
use crate::cli::commands::list_hint::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::connection::target::Target;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;
use crate::client::{DeliverySelection, ReceivedBody};
use crate::domain::delivery::DeliveryStatus;
use crate::domain::rate::Rate;

/// Send deliveries again
#[derive(Debug, Args)]
#[command(after_long_help = "\
Takes ids, or flags that select deliveries; of those, the dead ones unless
--status names others. A webhook is repeated with the same webhook-id and the
same body, so that its receiver can ignore what it has. Prints the id of each,
or how many were selected.

Examples:
  forms deliveries redeliver dlv_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms deliveries redeliver --form lunch --status dead --dry-run
  forms deliveries redeliver --form lunch --status dead --rate 10/s")]
pub(super) struct Redeliver {
    /// Deliveries, by id
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    deliveries: Vec<String>,
    #[command(flatten)]
    selection: SelectionFlags,
    /// How fast, such as 10/s; without it, at once
    #[arg(long, value_parser = rate)]
    rate: Option<String>,
    /// Only count those that would be sent again
    #[arg(long)]
    dry_run: bool,
}

impl Run for Redeliver {
    fn columns(&self) -> Columns {
        if self.names_none() { COUNT } else { DELIVERY }
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (client, output) = (session.client().await?, &session.output);
        if self.deliveries.is_empty() {
            return self.redeliver_selected(session).await;
        }
        refuse_both(&self.selection)?;
        if self.dry_run || self.rate.is_some() {
            let message = "--dry-run and --rate are for deliveries selected by flags, not by id";
            return Err(CliError::usage(message));
        }
        for_each(session, &self.deliveries, async |id| {
            let sent = client.redeliver(id).await;
            let sent = sent.map_err(|error| with_list_hint(session, error, "deliveries"))?;
            output.object(&sent, || format!("{}\n", sent.id))?;
            self.report(session, &sent)
        })
        .await
    }
}

impl Redeliver {
    /// Whether deliveries are selected by flags.
    pub(super) fn names_none(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// Reports whether the delivery is sent, or for what it waits.
    fn report(&self, session: &Session, sent: &DeliveryDetail) -> Result<(), CliError> {
        let output = &session.output;
        if sent.status.known() == Some(DeliveryStatus::Paused) {
            let command = enable_command(session, sent);
            output.status(&format!("it waits: its integration is disabled or paused; {command}"));
        } else if matches!(session.target()?, Target::Data(_)) {
            output.status(&wait_for_server(1));
        } else {
            output.success("sending it again");
        }
        Ok(())
    }

    async fn redeliver_selected(&self, session: &Session) -> Result<(), CliError> {
        require_flag(&self.selection, "redeliver --form FORM --status dead")?;
        let selection = self.selection.selection(session)?;
        let (dry_run, rate) = (self.dry_run, self.rate.clone());
        let selection = DeliverySelection { dry_run, rate, ..selection };
        let counted = session.client().await?.redeliver_all(&selection).await;
        let counted = counted.map_err(|error| self.selection.explain(session, error.into()))?;
        let output = &session.output;
        output.object(&counted, || format!("{}\n", counted.count))?;
        let count = deliveries(counted.count);
        match self.dry_run {
            true => output.status(&format!("{count} would be sent again")),
            false if counted.count > 0 && matches!(session.target()?, Target::Data(_)) => {
                output.status(&wait_for_server(counted.count));
            }
            false => match self.paused(session).await {
                Some(paused) => {
                    let command = enable_command(session, &paused);
                    let waiting = "those whose integration is disabled or paused wait";
                    output.status(&format!("{count} selected; {waiting}: {command}"));
                }
                None => output.success(&format!("{count} will be sent again")),
            },
        }
        if counted.has_more {
            output.status("more match: repeat the command for the others");
        }
        Ok(())
    }

    /// Returns one of the selected deliveries that wait for their integration, if they can be listed.
    async fn paused(&self, session: &Session) -> Option<ReceivedBody<DeliveryDetail>> {
        let paused = vec![DeliveryStatus::Paused.name().to_owned()];
        let query = DeliverySelection { status: paused, ..self.selection.selection(session).ok()? };
        let client = session.client().await.ok()?;
        client.list_deliveries(&query, 1).next().await.ok()??.into_iter().next()
    }
}

/// Returns the command that enables the integration of `delivery`.
fn enable_command(session: &Session, delivery: &DeliveryDetail) -> String {
    let integration = &delivery.integration;
    let name = integration.name.clone().unwrap_or_else(|| integration.id.to_string());
    format!("{} integrations enable {} {name}", session.command_prefix(), delivery.form_id)
}

/// Formats how many deliveries wait because a data directory is used without a server.
fn wait_for_server(count: u64) -> String {
    format!("{} {} for a server", deliveries(count), if count == 1 { "waits" } else { "wait" })
}

/// Parses a rate, which is sent as text.
fn rate(text: &str) -> Result<String, String> {
    let parsed: Result<Rate, _> = text.parse();
    parsed
        .map(|_| text.to_owned())
        .map_err(|_invalid| format!("must be a rate such as \"10/s\", found `{text}`"))
}

/// Formats a number of deliveries.
pub(super) fn deliveries(count: u64) -> String {
    if count == 1 { "1 delivery".to_owned() } else { format!("{} deliveries", grouped(count)) }
}

/// Refuses flags beside ids.
pub(super) fn refuse_both(selection: &SelectionFlags) -> Result<(), CliError> {
    if selection.is_empty() {
        return Ok(());
    }
    Err(CliError::usage("name deliveries by id, or select them by flags, not both"))
}

/// Refuses a command that neither names nor selects deliveries; `example` has flags.
pub(super) fn require_flag(selection: &SelectionFlags, example: &str) -> Result<(), CliError> {
    if !selection.is_empty() {
        return Ok(());
    }
    let help = format!("name them by id, or select them: forms deliveries {example}");
    Err(CliError::usage_with_help("no deliveries are named or selected", help))
}
