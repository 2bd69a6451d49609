//! Commands about the command line itself: who am I, what does this code mean, completion scripts.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use crate::api::{self, Code};
use crate::cli::args::Cli;
use crate::cli::context::Target;
use crate::cli::diagnostics::similar;
use crate::cli::document::FILE_CODES;
use crate::cli::exit::CliError;
use crate::cli::output::visible;
use crate::cli::session::Session;
use crate::domain::violation::Rule;

/// Show server, key and workspace, and where each was found
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  forms whoami
  forms whoami -o json | jq -r .url.source")]
pub struct Whoami {}

impl Whoami {
    /// Asks the server who the key belongs to, and adds who named both.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let whoami = session.client().await?.whoami().await?;
        let scopes: Vec<_> = whoami.key.scopes.iter().map(|scope| scope.name()).collect();
        let (place, name, key_source) = match session.target()? {
            Target::Server { url, key } => {
                let value = url.value.as_str().trim_end_matches('/');
                let source = key.as_ref().map(|key| json!(key.source)).unwrap_or_default();
                (json!({"value": value, "source": url.source}), "url", source)
            }
            Target::Data(data) => {
                (json!({"value": data.value, "source": data.source}), "data", json!("data"))
            }
        };
        let text = || {
            let shown = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            format!(
                "{name:<10} {}  ({})\nkey        {} \"{}\" {}  ({})\nworkspace  {} \"{}\"\n",
                shown(&place["value"]),
                shown(&place["source"]),
                whoami.key.id,
                visible(&whoami.key.name),
                scopes.join(", "),
                shown(&key_source),
                whoami.workspace.id,
                visible(&whoami.workspace.name),
            )
        };
        let key =
            json!({"id": whoami.key.id, "name": whoami.key.name, "scopes": scopes, "source": key_source});
        session.output.object(&json!({name: place, "key": key, "workspace": whoami.workspace}), text)
    }
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
        let of_file = || FILE_CODES.iter().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning);
        let Some(meaning) = api::explain(code).or_else(of_file) else {
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
    codes.chain(Rule::ALL.iter().map(|rule| rule.name())).chain(FILE_CODES.iter().map(|(name, _)| *name))
}

/// `text` in lines of `width` characters at most, broken between words.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
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
        clap_complete::generate(self.shell, &mut Cli::command(), "forms", &mut script);
        session.output.write(&String::from_utf8_lossy(&script))
    }
}
