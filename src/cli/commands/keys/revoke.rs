//! `forms keys revoke` and `rotate`.

use clap::Args;
use serde_json::json;

use crate::api::{self, Code, KeyDetail};
use crate::cli::commands::batch::for_each;
use crate::cli::commands::keys::create::describe;
use crate::cli::commands::keys::{CREATED, SHOWN_ONCE, revealed, scope_names, stored_keys};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::input::values::grace;
use crate::client::ClientError;
use crate::secret::KeyId;

/// Revoke API keys
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for confirmation; without a terminal, --yes is required. Prints the id of
each key. A revoked key cannot be restored. The last one with the scope admin
cannot be revoked.

Examples:
  forms keys revoke key_1a2b3c4d
  forms keys revoke --yes key_1a2b3c4d key_5e6f7g8h")]
pub struct Revoke {
    /// Keys, by id: `forms keys list` shows it
    #[arg(required = true, value_name = "ID")]
    keys: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for Revoke {
    const COLUMNS: Columns = Columns::Fixed(&["id", "revoked"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        for_each(session, &self.keys, async |id| self.revoke(session, id).await).await
    }
}

impl Revoke {
    async fn revoke(&self, session: &Session, id: &str) -> Result<(), CliError> {
        let output = &session.output;
        let client = session.client().await?;
        let keys = if self.yes { Vec::new() } else { client.list::<KeyDetail>(&["keys"], "keys").await? };
        if stored_keys::id_in_use(session).is_some_and(|own| own.to_string() == id) {
            output.warn(&format!("{id} is the key in use: afterwards commands need another one"));
        }
        // The server reports a key that does not exist.
        if let Some(key) = keys.iter().find(|key| key.id.to_string() == id) {
            let what = format!("revoke {id} \"{}\" ({})", key.name, scope_names(&key.scopes));
            session.confirm(&what, ConfirmBy::Yes).await?;
        }
        let revoked = session.client().await?.delete(&["keys", id], false).await;
        revoked.map_err(|error| explain_last_key(error, &session.command_prefix()))?;
        output.object(&json!({"id": id, "revoked": true}), || format!("{id}\n"))?;
        output.success("Revoked");
        Ok(())
    }
}

fn explain_last_key(error: ClientError, prefix: &str) -> CliError {
    if error.problem().is_none_or(|problem| problem.code != Code::LastKey) {
        return error.into();
    }
    let help = format!(
        "{prefix} keys create --name admin --scope admin; a lost key is replaced by forms keys create --data DIR"
    );
    CliError::client_with_help(error, help)
}

/// Replace an API key by a new one with the same name, scopes and limits
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only the new key, which the server does not show again. The old one ends
at once, or after --grace. A key that `forms login` has stored is replaced in
credentials.yaml too.

Examples:
  forms keys rotate key_1a2b3c4d
  forms keys rotate key_1a2b3c4d --grace 24h")]
pub struct Rotate {
    /// Key, by id: `forms keys list` shows it
    #[arg(value_name = "ID")]
    key: String,
    /// How long the old key stays valid: 24h
    #[arg(long, value_name = "TIME", value_parser = grace)]
    grace: Option<String>,
}

impl Run for Rotate {
    const COLUMNS: Columns = CREATED;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let request = api::Rotate { grace: self.grace };
        let rotated = client.post::<KeyDetail>(&["keys", &self.key, "rotate"], &request).await?;
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
