//! `forms login`.

use clap::Args;
use serde_json::json;

use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::credentials::{Context, Credentials};
use crate::cli::connection::global_flags::Global;
use crate::cli::connection::target::{self, Key, Source, Sourced, Target};
use crate::cli::input::prompt;
use crate::cli::output::visible;
use crate::client::Url;

/// Store a server and an API key for it as the current context
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks for the key, checks it with one request, and stores it in credentials.yaml
of the configuration folder, readable only by you. Prints the name of the
context: commands use it from now on, until another is the current one. Without
URL, logs in to the server that commands use now.

Examples:
  forms login https://forms.example.com
  forms login https://forms.example.com --name prod --key-file ./key
  pass show forms | forms login https://forms.example.com --key-file -")]
pub struct Login {
    /// Server address
    #[arg(value_name = "URL")]
    server: Option<String>,
    /// Name of the context; default: its address
    #[arg(long, value_name = "NAME", value_parser = context_name)]
    name: Option<String>,
}

/// Help if the server refuses the key.
const NOT_STORED: &str = "nothing was stored; check that the key is complete and belongs to this server";

/// Maximum length of the name of a context.
const MAX_NAME: usize = 64;

/// Parses the name of a context: it must not need quotes in a shell or in YAML.
fn context_name(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.len() <= MAX_NAME
        && text.bytes().all(is_allowed)
        && !text.starts_with(['-', '.'])
        && !text.is_empty()
    {
        return Ok(text.to_owned());
    }
    Err("expected 1 to 64 letters, digits, `.`, `_` and `-`".to_owned())
}

impl Run for Login {
    const COLUMNS: Columns = Columns::Fixed(&["name", "url", "key", "workspace"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        // A file that cannot be written afterwards is reported before the key is asked for.
        let stored = session.credentials()?;
        stored.path()?;
        let (url, chosen) = self.address(session)?;
        session.require_encryption(&url.value)?;
        let name = match self.name.clone().or(chosen) {
            Some(name) => name,
            None => default_name(session, stored, &url.value)?,
        };
        let key = key(session, &url.value).await?;
        let (address, text) = (target::display_url(&url.value), key.text.clone());
        let insecure_http = target::require_encryption(&url.value, false).is_err();
        session.use_target(Target::Server { url, context: None, key: Some(key) });
        let owner = session.client().await?.whoami().await;
        let owner = owner.map_err(|error| match error.status() {
            Some(401) => CliError::client_with_help(error, NOT_STORED),
            _ => error.into(),
        })?;

        let context = Context::new(address.clone(), text, insecure_http);
        let store = |credentials: &mut Credentials| {
            credentials.current = Some(name.clone());
            Ok(credentials.contexts.insert(name.clone(), context))
        };
        let (credentials, replaced) = Credentials::update(&session.environment, &session.output, store)?;

        let view = json!({"name": name, "url": address, "key": owner.key, "workspace": owner.workspace});
        let output = &session.output;
        output.object(&view, || format!("{name}\n"))?;
        let (key, workspace) = (visible(&owner.key.name), visible(&owner.workspace.name));
        output.success(&format!("logged in to {address} as \"{key}\" (workspace \"{workspace}\")"));
        output.status(&format!("stored in {}, mode 600", credentials.path()?.display()));
        if let Some(other) = replaced.filter(|replaced| replaced.url != address) {
            output.status(&format!("context `{name}` was {} before", other.url));
        }
        warn_of_variables(session, &name, &address);
        Ok(())
    }
}

impl Login {
    /// Returns the address to log in to, and the name of its context if it was found by that.
    fn address(&self, session: &Session) -> Result<(Sourced<Url>, Option<String>), CliError> {
        let global = &session.global;
        if global.data.is_some() {
            return Err(CliError::usage("--data cannot be used with forms login"));
        }
        if self.server.is_some() && (global.url.is_some() || global.context.is_some()) {
            return Err(CliError::usage("--url and --context cannot be used with a server address"));
        }
        let url = self.server.clone().or_else(|| global.url.clone());
        target::address(session, &Global { url, ..global.clone() })
    }
}

/// Returns the name under which `url` is stored already; else the whole address, without `https`.
///
/// # Errors
/// If another server's context has the name.
fn default_name(session: &Session, stored: &Credentials, url: &Url) -> Result<String, CliError> {
    if let Some((name, _)) = stored.find_by_url(url, session.chosen_context().as_deref()) {
        return Ok(name.to_owned());
    }
    let address = target::display_url(url);
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "._".contains(character);
    let words = address.trim_start_matches("https://").split(|character| !is_allowed(character));
    let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    let name = name.get(..MAX_NAME).unwrap_or(&name).to_owned();
    match stored.contexts.get(&name) {
        Some(other) => Err(CliError::usage_with_help(
            format!("context `{name}` is for another server, {}", other.url),
            "add --name NAME",
        )),
        None => Ok(name),
    }
}

/// Returns the key in the file of `--key-file`, or asks for one. Variables are not read: they would override what is stored.
async fn key(session: &Session, url: &Url) -> Result<Key, CliError> {
    if let Some(key) = target::key_of_flag(session)? {
        return Ok(key);
    }
    if let Some(obstacle) = prompt::prompt_obstacle(session.global.no_input, &session.environment) {
        let message = format!("logging in needs an API key, and {obstacle}");
        let help = "add --key-file PATH, or --key-file - to read it from stdin";
        return Err(CliError::usage_with_help(message, help));
    }
    let question = format!("API key for {}", target::display_url(url));
    let typed =
        prompt::dialogue(&session.output, "canceled, nothing was stored", prompt::secret(&question)).await?;
    target::parse_key(&typed, Source::Flag, "the text typed".to_owned())
}

/// Warns of each variable that overrides the context `name` for the server at `url`.
pub(super) fn warn_of_variables(session: &Session, name: &str, url: &str) {
    let own = [("FORMS_DATA", ""), ("FORMS_URL", url), ("FORMS_CONTEXT", name)];
    let keys = [("FORMS_API_KEY", ""), ("FORMS_API_KEY_FILE", "")];
    for (variable, own) in own.into_iter().chain(keys) {
        let value = session.environment.get(variable).map(|value| value.trim_end_matches('/'));
        if value.is_some_and(|value| value != own) {
            session.output.warn(&format!(
                "{variable} is set and overrides context `{name}`; unset it to use this context"
            ));
        }
    }
}
