//! `forms deliveries cancel`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::commands::Run;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::deliveries::COUNT;
use crate::cli::commands::deliveries::DELIVERY;
use crate::cli::commands::deliveries::redeliver::{deliveries, refuse_both, require_flag};
use crate::cli::commands::deliveries::selection::SelectionFlags;
use crate::cli::commands::list_hint::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::client::{ClientError, DeliverySelection};

/// Cancel deliveries that wait
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
pub(super) struct Cancel {
    /// Deliveries, by id
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    deliveries: Vec<String>,
    #[command(flatten)]
    selection: SelectionFlags,
    /// Only count those that would be canceled
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for Cancel {
    fn columns(&self) -> Columns {
        if self.names_none() { COUNT } else { DELIVERY }
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (client, output) = (session.client().await?, &session.output);
        if self.deliveries.is_empty() {
            return self.cancel_selected(session).await;
        }
        refuse_both(&self.selection)?;
        if self.dry_run {
            return Err(CliError::usage("--dry-run is for deliveries selected by flags, not by id"));
        }
        for_each(session, &self.deliveries, async |id| {
            let canceled = client.cancel_delivery(id).await;
            let canceled = canceled.map_err(|error| with_list_hint(session, error, "deliveries"))?;
            output.object(&canceled, || format!("{}\n", canceled.id))?;
            output.success("canceled");
            Ok(())
        })
        .await
    }
}

impl Cancel {
    /// Whether deliveries are selected by flags.
    pub(super) fn names_none(&self) -> bool {
        self.deliveries.is_empty()
    }

    async fn cancel_selected(&self, session: &Session) -> Result<(), CliError> {
        require_flag(&self.selection, "cancel --form FORM --status pending")?;
        let selection = self.selection.selection(session)?;
        let (client, output) = (session.client().await?, &session.output);
        let explain = |error: ClientError| self.selection.explain(session, error.into());
        if self.dry_run || !self.yes {
            let dry_run = DeliverySelection { dry_run: true, ..selection.clone() };
            let counted = client.cancel_deliveries(&dry_run).await.map_err(explain)?;
            let count = deliveries(counted.count);
            if self.dry_run {
                output.object(&counted, || format!("{}\n", counted.count))?;
                output.status(&format!("{count} would be canceled"));
                return Ok(());
            }
            if counted.count == 0 {
                output.object(&counted, || "0\n".to_owned())?;
                output.status("no deliveries match");
                return Ok(());
            }
            let question = format!("Cancel {count} on {}?", session.target_name()?);
            session.confirm(&format!("canceling {count}"), question, ConfirmBy::Yes).await?;
        }
        let counted = client.cancel_deliveries(&selection).await.map_err(explain)?;
        output.object(&counted, || format!("{}\n", counted.count))?;
        output.success(&format!("canceled {}", deliveries(counted.count)));
        if counted.has_more {
            output.status("more match: repeat the command for the others");
        }
        Ok(())
    }
}
