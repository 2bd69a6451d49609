//! `forms keys revoke`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::api::{Code, Problem};
use crate::cli::commands::Run;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::keys::{find, scope_names, stored_keys};
use crate::cli::commands::list_hint::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::visible;
use crate::client::{Client, ClientError};

/// Revoke API keys
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Prints the id of
each key. A revoked key cannot be restored.

Examples:
  forms keys revoke key_1a2b3c4d
  forms keys revoke --yes key_1a2b3c4d key_5e6f7g8h")]
pub(super) struct Revoke {
    /// Keys, by id: `forms keys list` shows it
    #[arg(required = true, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    keys: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for Revoke {
    fn columns(&self) -> Columns {
        Columns::Fixed(&["id", "revoked"])
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        for_each(session, &self.keys, async |id| self.revoke(session, &client, id).await).await
    }
}

impl Revoke {
    async fn revoke(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        let output = &session.output;
        let is_own = stored_keys::id_in_use(session).is_some_and(|own| own.to_string() == id);
        if is_own {
            output.warn(&format!("{id} is the key in use: afterwards commands need another one"));
        }
        if !self.yes {
            ask(session, client, id).await?;
        }
        let revoked = client.revoke_key(id).await;
        revoked.map_err(|error| with_list_hint(session, error, "keys"))?;
        output.object(&json!({"id": id, "revoked": true}), || format!("{id}\n"))?;
        output.success("revoked");
        Ok(())
    }
}

/// Asks for confirmation, naming the key and the target.
async fn ask(session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
    let Some(key) = find(client, id).await? else {
        let problem = Problem::new(Code::KeyNotFound).detail(format!("no key `{}`", visible(id)));
        return Err(with_list_hint(session, ClientError::Problem(Box::new(problem)), "keys"));
    };
    let name = format!("{id} \"{}\" ({})", key.name, scope_names(&key.scopes));
    let question = format!("Revoke {name} on {}?", session.target_name()?);
    session.confirm(&format!("revoking {name}"), question, ConfirmBy::Yes).await
}
