//! `forms deliveries redeliver`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::DeliverySelection;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::deliveries::selection::SelectionFlags;
use crate::cli::commands::list_hint::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;

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
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    rate: Option<String>,
    /// Only count those that would be sent again
    #[arg(long)]
    dry_run: bool,
}

impl Redeliver {
    /// Whether deliveries are selected by flags.
    pub(super) fn names_none(&self) -> bool {
        self.deliveries.is_empty()
    }

    pub(super) async fn run(self, session: &Session) -> Result<(), CliError> {
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
            output.success("sending it again");
            Ok(())
        })
        .await
    }

    async fn redeliver_selected(&self, session: &Session) -> Result<(), CliError> {
        require_flag(&self.selection, "redeliver --form FORM --status dead")?;
        let selection = self.selection.selection(session)?;
        let (dry_run, rate) = (self.dry_run, self.rate.clone());
        let selection = DeliverySelection { dry_run, rate, ..selection };
        let counted = session.client().await?.redeliver_all(&selection).await?;
        let output = &session.output;
        output.object(&counted, || format!("{}\n", counted.count))?;
        let count = deliveries(counted.count);
        match self.dry_run {
            true => output.status(&format!("{count} would be sent again")),
            false => output.success(&format!("{count} will be sent again")),
        }
        if counted.has_more {
            output.status("more match: repeat the command for the others");
        }
        Ok(())
    }
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
