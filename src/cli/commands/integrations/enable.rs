//! `forms integrations enable` and `disable`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::commands::Run;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::integrations::INTEGRATION;
use crate::cli::commands::integrations::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;

/// Enable integrations, and resume those that the server has paused
#[derive(Debug, Args)]
#[command(after_long_help = "\
What waits is delivered. Of an integration that the server has paused, what
failed for good since it began to fail is delivered too. Prints the id of each
integration.

Examples:
  forms integrations enable lunch webhook")]
pub(super) struct Enable {
    #[command(flatten)]
    target: Target,
}

/// Disable integrations: events from now on are not delivered to them
#[derive(Debug, Args)]
#[command(after_long_help = "\
Events that come while it is disabled are never delivered to it; what waits
already is delivered once it is enabled. Prints the id of each integration.

Examples:
  forms integrations disable lunch webhook")]
pub(super) struct Disable {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
struct Target {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Integrations, by name or id
    #[arg(required = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
}

impl Run for Enable {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        self.target.set_enabled(session, true).await
    }
}

impl Run for Disable {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        self.target.set_enabled(session, false).await
    }
}

impl Target {
    async fn set_enabled(&self, session: &Session, enabled: bool) -> Result<(), CliError> {
        let (client, output) = (session.client().await?, &session.output);
        for_each(session, &self.names, async |name| {
            let patch = format!(r#"{{"enabled":{enabled}}}"#);
            let updated = client.update_integration(&self.form, name, &patch, None).await;
            let updated = updated.map_err(|error| with_list_hint(session, error, &self.form))?;
            output.object(&updated, || format!("{}\n", updated.id))?;
            output.success(&format!("{} `{}`", if enabled { "enabled" } else { "disabled" }, updated.name));
            Ok(())
        })
        .await
    }
}
