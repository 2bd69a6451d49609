//! `forms context` and `forms logout`: the servers and keys that `forms login` stored.

use clap::Args;
use serde_json::json;

use crate::cli::commands::batch::for_each;
use crate::cli::commands::login::warn_of_variables;
use crate::cli::commands::{CliError, Columns, Run, Session, subcommands};
use crate::cli::connection::credentials::Credentials;
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::output::table::Cell;
use crate::cli::output::visible;
use crate::client::redacted;
use crate::secret::KeyText;

subcommands! {
    /// List, choose and remove contexts: servers with their API keys
    #[command(after_long_help = "\
`forms login` stores a context. Commands use the current one, unless --url,
--context, FORMS_URL or FORMS_CONTEXT select another server.

Examples:
  forms context list
  forms context use prod
  forms --context staging list")]
    pub enum Context {
        List(List),
        Use(Use),
        Remove(Remove),
    }
}

/// List contexts
#[derive(Debug, Args)]
#[command(after_long_help = "\
The columns are name, url, current and key; of a key only the end is shown.

Examples:
  forms context list
  forms context list -o json | jq -r '.contexts[] | select(.current) | .url'")]
pub struct List {}

/// Make a context the current one
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the name. Commands without --url and --context use its server from now
on.

Examples:
  forms context use prod")]
pub struct Use {
    /// Context, by name: `forms context list` shows it
    name: String,
}

/// Remove contexts and their keys from this machine
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints each name. The keys themselves stay valid: `forms keys revoke` ends them.

Examples:
  forms context remove staging")]
pub struct Remove {
    /// Contexts, by name: `forms context list` shows them
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

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
    name: Option<String>,
}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let credentials = session.credentials()?;
        let entries = credentials.contexts.iter().map(|(name, context)| Entry {
            name: name.clone(),
            url: context.url.clone(),
            current: credentials.current.as_ref() == Some(name),
            key: redacted(context.key.reveal()),
        });
        let columns = vec![
            Column::new("name", |entry| Cell::text(&*entry.name)),
            Column::new("url", |entry| Cell::text(&*entry.url)),
            Column::new("current", |entry| {
                Cell::number(entry.current).with_display(if entry.current { "*" } else { "" })
            }),
            Column::new("key", |entry| Cell::text(&*entry.key)),
        ];
        let none = "no contexts yet: forms login URL";
        Listing::new(&session.output, "contexts", none, columns).show_items(entries.collect())
    }
}

impl Run for Use {
    const COLUMNS: Columns = Columns::Fixed(&["name", "url", "current"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let name = &*self.name;
        let (_, url) = Credentials::update(&session.environment, &session.output, |credentials| {
            let url = credentials.get(name)?.url.clone();
            credentials.current = Some(name.to_owned());
            Ok(url)
        })?;
        let view = json!({"name": name, "url": url, "current": true});
        session.output.object(&view, || format!("{}\n", visible(name)))?;
        session.output.success(&format!("commands use {url} from now on"));
        warn_of_variables(session, name, &url);
        Ok(())
    }
}

impl Run for Remove {
    const COLUMNS: Columns = Columns::Fixed(&["name", "removed"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        for_each(session, &self.names, async |name| remove(session, name)).await
    }
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

/// A line of the list.
#[derive(serde::Serialize)]
struct Entry {
    name: String,
    url: String,
    current: bool,
    key: String,
}

type Column<'a> = listing::Column<'a, Entry>;

/// Removes the context `name`, and shows how to revoke its key.
fn remove(session: &Session, name: &str) -> Result<(), CliError> {
    let remove = |credentials: &mut Credentials| {
        let was_current = credentials.current.as_deref() == Some(name);
        Ok((credentials.remove(name)?, was_current))
    };
    let (credentials, (removed, was_current)) =
        Credentials::update(&session.environment, &session.output, remove)?;
    let output = &session.output;
    output.object(&json!({"name": name, "removed": true}), || format!("{}\n", visible(name)))?;
    output.success(&format!("Removed the key for {} from this machine", removed.url));
    if let Ok(key) = removed.key.reveal().parse::<KeyText>() {
        let revoke = format!("forms --url {} keys revoke {}", shell_quote(&removed.url), key.id());
        output.status(&format!("The key still works. Revoke it: {revoke}"));
    }
    if let Some(other) = credentials.contexts.keys().next().filter(|_| was_current) {
        output.status(&format!("No context selected. Select one: forms context use {other}"));
    }
    Ok(())
}
