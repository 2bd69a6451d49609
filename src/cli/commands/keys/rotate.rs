//! `forms keys rotate`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api;
use crate::cli::commands::Run;
use crate::cli::commands::keys::CREATED;
use crate::cli::commands::keys::create::describe;
use crate::cli::commands::keys::{SHOWN_ONCE, revealed, stored_keys};
use crate::cli::commands::list_hint::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::input::values::duration;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::secret::KeyId;

/// Replace an API key by a new one with the same name, scopes and limits
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only the new key, which the server does not show again. The old one ends
at once, or after --grace. A key that `forms login` has stored is replaced in
credentials.yaml too.

Examples:
  forms keys rotate key_1a2b3c4d
  forms keys rotate key_1a2b3c4d --grace 24h")]
pub(super) struct Rotate {
    /// Key, by id: `forms keys list` shows it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    key: String,
    /// How long the old key stays valid: 24h
    #[arg(long, value_name = "TIME", value_parser = grace)]
    grace: Option<String>,
}

/// Checks a duration, which is sent as text; a bare number is seconds.
fn grace(text: &str) -> Result<String, String> {
    Ok(format!("{}ms", duration(text)?.as_millis()))
}

impl Run for Rotate {
    fn columns(&self) -> Columns {
        CREATED
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let rotated = client.rotate_key(&self.key, &api::Rotate { grace: self.grace.clone() }).await;
        let rotated = rotated.map_err(|error| with_list_hint(session, error, "keys"))?;
        let prefix = session.command_prefix();
        let help = format!("rotate it again: {prefix} keys rotate {}", rotated.id);
        let text = revealed(rotated.key.as_ref(), &rotated.id.to_string(), help)?;
        let output = &session.output;
        output.object(&rotated, || format!("{text}\n"))?;
        output.success(&format!("{} is replaced by {}", self.key, describe(&rotated)));
        let old = self.key.parse::<KeyId>();
        if !old.map_or(Ok(false), |old| stored_keys::replace(session, old, text))? {
            output.status(SHOWN_ONCE);
        }
        Ok(())
    }
}
