//! `forms integrations delete`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::cli::commands::Run;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::integrations::{name, with_list_hint};
use crate::cli::connection::session::Session;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;
use crate::client::Client;

/// Delete integrations; what waits for them is canceled
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Files that an
integration has written are kept. Prints the name of each.

Examples:
  forms integrations delete lunch webhook
  forms integrations delete --yes lunch webhook csv_file")]
pub(super) struct Delete {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Integrations, by name or id
    #[arg(required = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for Delete {
    fn columns(&self) -> Columns {
        Columns::Fixed(&["name", "deleted"])
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        for_each(session, &self.names, async |name| self.delete(session, &client, name).await).await
    }
}

impl Delete {
    async fn delete(&self, session: &Session, client: &Client, name: &str) -> Result<(), CliError> {
        if !self.yes {
            self.ask(session, client, name).await?;
        }
        let deleted = client.delete_integration(&self.form, name).await;
        deleted.map_err(|error| with_list_hint(session, error, &self.form))?;
        session.output.object(&json!({"name": name, "deleted": true}), || format!("{name}\n"))?;
        session.output.success("deleted");
        Ok(())
    }

    /// Asks for confirmation, naming the integration, what waits for it, and the server.
    async fn ask(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        let found = client.get_integration(&self.form, id).await;
        let found = found.map_err(|error| with_list_hint(session, error, &self.form))?;
        let waiting = match found.health.pending {
            0 => String::new(),
            count => format!(" ({} waiting)", grouped(count)),
        };
        let name = format!("{}{waiting}", name(&found)?);
        let question = format!("Delete {name} on {}?", session.target_name()?);
        session.confirm(&format!("deleting {name}"), question, ConfirmBy::Yes).await
    }
}
