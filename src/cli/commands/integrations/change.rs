//! `forms integrations update`, `enable`, `disable` and `delete`.

use clap::Args;
use serde_json::json;

use crate::api::IntegrationDetail;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::integrations::members::MemberFlags;
use crate::cli::commands::integrations::{INTEGRATION, One, Several, name, report};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::humanize::grouped;

/// Change an integration
#[derive(Debug, Args)]
#[command(after_long_help = "\
Changes only the members that are given, as in `forms integrations create`; an
empty value removes one, or has a new signing secret made. A webhook that is
moved to another host needs its secrets again: they were meant for the old one.
Prints the integration's id, or the new secret.

Examples:
  forms integrations update lunch webhook --set url=https://example.com/v2/hooks
  forms integrations update lunch webhook --set payload=thin --set when=
  forms integrations update lunch webhook --set-secret bearer_token=@token")]
pub struct Update {
    #[command(flatten)]
    which: One,
    #[command(flatten)]
    members: MemberFlags,
}

impl Run for Update {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { which: One { form, integration }, members } = self;
        if members.is_empty() {
            let help = "say what to change: --set or --set-secret, or -f FILE";
            return Err(CliError::usage_with_help("there is nothing to change", help));
        }
        let patch = members.read(session, None).await?;
        let client = session.client().await?;
        let updated = client.patch(&["forms", &form, "integrations", &integration], &patch.sent).await;
        report(session, &updated.map_err(|error| patch.explain(error))?, "updated")
    }
}

/// Enable integrations, and resume those that the server has paused
#[derive(Debug, Args)]
#[command(after_long_help = "\
Delivers pending events. If the server paused it, also retries those that failed
since. Prints the id of each integration.

Examples:
  forms integrations enable lunch webhook")]
pub struct Enable {
    #[command(flatten)]
    which: Several,
}

/// Disable integrations: events from now on are not delivered to them
#[derive(Debug, Args)]
#[command(after_long_help = "\
Events that come while it is disabled are never delivered to it; pending ones
are delivered once it is enabled. Prints the id of each integration.

Examples:
  forms integrations disable lunch webhook")]
pub struct Disable {
    #[command(flatten)]
    which: Several,
}

impl Run for Enable {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        set_enabled(session, &self.which, true).await
    }
}

impl Run for Disable {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        set_enabled(session, &self.which, false).await
    }
}

async fn set_enabled(session: &Session, which: &Several, enabled: bool) -> Result<(), CliError> {
    let client = session.client().await?;
    let patch = json!({"enabled": enabled});
    for_each(session, &which.integrations, async |integration| {
        let updated = client.patch(&["forms", &which.form, "integrations", integration], &patch).await?;
        report(session, &updated, if enabled { "enabled" } else { "disabled" })
    })
    .await
}

/// Delete integrations, and cancel their pending deliveries
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Files that an
integration has written are kept. Prints the name of each.

Examples:
  forms integrations delete lunch webhook
  forms integrations delete --yes lunch webhook csv_file")]
pub struct Delete {
    #[command(flatten)]
    which: Several,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for Delete {
    const COLUMNS: Columns = Columns::Fixed(&["name", "deleted"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let integrations = &self.which.integrations;
        for_each(session, integrations, async |integration| self.delete(session, integration).await).await
    }
}

impl Delete {
    async fn delete(&self, session: &Session, integration: &str) -> Result<(), CliError> {
        let path = ["forms", &self.which.form, "integrations", integration];
        if !self.yes {
            let found = session.client().await?.get::<IntegrationDetail>(&path).await?;
            let pending = match found.health.pending {
                0 => String::new(),
                count => format!(" and cancel {} pending", grouped(count)),
            };
            session.confirm(&format!("delete {}{pending}", name(&found)?), ConfirmBy::Yes).await?;
        }
        session.client().await?.delete(&path, false).await?;
        session
            .output
            .object(&json!({"name": integration, "deleted": true}), || format!("{integration}\n"))?;
        session.output.success("Deleted");
        Ok(())
    }
}
