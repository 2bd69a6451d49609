//! `forms logout`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::commands::Run;
use crate::cli::commands::context::remove;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;

/// Remove a context and its key from this machine
#[derive(Debug, Args)]
#[command(after_long_help = "\
Removes what `forms login` stored, by default the current context. The key
itself stays valid: `forms keys revoke` ends it.

Examples:
  forms logout
  forms logout prod")]
pub struct Logout {
    /// Context, by name: `forms context list` shows it
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
}

impl Run for Logout {
    const COLUMNS: Columns = Columns::Fixed(&["name", "removed"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        if self.name.is_some() && session.global.context.is_some() {
            return Err(CliError::usage("--context cannot be used with a name"));
        }
        // A broken file is reported as such, not as one without a current context.
        session.credentials()?;
        let Some(name) = self.name.or_else(|| session.chosen_context()) else {
            let help = "forms context list shows all";
            return Err(CliError::usage_with_help("no context is selected", help));
        };
        remove(session, &name)
    }
}
