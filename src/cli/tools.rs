//! Commands about the command line itself: who am I, what does this code mean, completion scripts.

use clap::Args;
use clap_complete::Shell;
use serde_json::{Value, json};

use crate::api::{self, Code, Whoami as Answer};
use crate::cli;
use crate::cli::context::{Key, Sourced, Target};
use crate::cli::document::FILE_CODES;
use crate::cli::exit::CliError;
use crate::cli::failure;
use crate::cli::output::{visible, wrapped};
use crate::cli::session::Session;
use crate::client::Url;
use crate::domain::similar::similar;
use crate::domain::violation::Rule;

/// Show server, key and workspace, and where each was found
#[derive(Debug, Args)]
#[command(after_long_help = "\
Shows what was found also if no server answers there, and then fails with 7.

Examples:
  forms whoami
  forms whoami -o json | jq -r .url.source")]
pub struct Whoami {}

impl Whoami {
    /// Asks the server who the key belongs to, and adds who named both: that much is known without an answer.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let asked = match session.client().await {
            Ok(client) => client.whoami().await.map_err(CliError::from),
            Err(error) => Err(error),
        };
        let target = session.target()?;
        let answer = asked.as_ref().ok();
        let (view, text) = (view(target, answer), || text(target, answer));
        match asked {
            Ok(_) => session.output.object(&view, text),
            Err(_) => session.output.found(view, text),
        }?;
        asked.map(drop)
    }
}

fn view(target: &Target, answer: Option<&Answer>) -> Value {
    let scopes = |answer: &Answer| json!(answer.key.scopes);
    let key = |source: Value| {
        json!({
            "id": answer.map(|answer| &answer.key.id),
            "name": answer.map(|answer| &answer.key.name),
            "scopes": answer.map(scopes),
            "source": source,
        })
    };
    let workspace = answer.map(|answer| &answer.workspace);
    match target {
        Target::Server { url, key: found } => {
            let key = found.as_ref().map(|found| key(json!(found.source)));
            json!({"url": {"value": address(url), "source": url.source}, "key": key, "workspace": workspace})
        }
        Target::Data(data) => {
            let key = answer.map(|_| key(json!("data")));
            json!({"data": data, "key": key, "workspace": workspace})
        }
    }
}

fn text(target: &Target, answer: Option<&Answer>) -> String {
    let view = view(target, answer);
    let source = |name: &str| view[name]["source"].as_str().unwrap_or_default().to_owned();
    let (name, place, key) = match target {
        Target::Server { url, key } => ("url", address(url), key.as_ref()),
        Target::Data(data) => ("data", data.value.display().to_string(), None),
    };
    let (key, workspace) = match answer {
        Some(Answer { key, workspace, .. }) => {
            let scopes: Vec<_> = key.scopes.iter().map(ToString::to_string).collect();
            let key = format!(
                "{} \"{}\" {}  ({})",
                key.id,
                visible(&key.name),
                visible(&scopes.join(", ")),
                source("key")
            );
            (key, format!("{} \"{}\"", workspace.id, visible(&workspace.name)))
        }
        None => {
            let key = key.map(|key| format!("{}  ({})", Key::redacted(key), source("key")));
            (key.unwrap_or_else(|| "none".to_owned()), "unknown".to_owned())
        }
    };
    format!("{name:<10} {}  ({})\nkey        {key}\nworkspace  {workspace}\n", visible(&place), source(name))
}

fn address(url: &Sourced<Url>) -> String {
    url.value.as_str().trim_end_matches('/').to_owned()
}

/// Explain an error code
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  forms explain unknown_field
  forms explain form_not_published")]
pub struct Explain {
    /// The code that stands in brackets after `error`
    code: String,
}

impl Explain {
    /// Prints what the code means and what to do.
    pub fn run(self, session: &Session) -> Result<(), CliError> {
        let code = self.code.trim_matches(['[', ']']);
        let own = || own_codes().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning);
        let Some(meaning) = api::explain(code).or_else(own) else {
            let message = format!("there is no code `{code}`");
            let help = similar(code, all_codes()).map(|name| format!("a similar code exists: {name}"));
            return Err(CliError::Usage { message, help });
        };
        let status = Code::parse(code).map(Code::status);
        let text = || format!("{}\n", wrapped(meaning, 80));
        session.output.object(&json!({"code": code, "status": status, "meaning": meaning}), text)
    }
}

fn all_codes() -> impl Iterator<Item = &'static str> {
    let codes = Code::ALL.iter().map(|code| code.name());
    codes.chain(Rule::ALL.iter().map(|rule| rule.name())).chain(own_codes().map(|(name, _)| *name))
}

/// The codes of the command line's own failures, and what they mean.
fn own_codes() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    FILE_CODES.iter().chain(&failure::CODES)
}

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  source <(forms completions bash)
  forms completions zsh > ~/.zfunc/_forms
  forms completions fish | source")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script. Rendered first: clap writes straight to a stream and panics where that is closed.
    pub fn run(self, session: &Session) -> Result<(), CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut cli::command(), "forms", &mut script);
        session.output.write(&String::from_utf8_lossy(&script))
    }
}
