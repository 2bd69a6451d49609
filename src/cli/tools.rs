//! Commands about the command line itself: who am I, what does this code mean, completion scripts.

use clap::{Arg, Args, ValueHint};
use clap_complete::Shell;
use serde_json::{Value, json};

use crate::api::{self, Code, Whoami as Answer};
use crate::cli;
use crate::cli::context::{Key, Sourced, Target};
use crate::cli::document::FILE_CODES;
use crate::cli::exit::CliError;
use crate::cli::failure;
use crate::cli::output::{Format, value_of, visible, wrapped};
use crate::cli::session::Session;
use crate::cli::table::Table;
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
Without a code: lists all of them.

Examples:
  forms explain
  forms explain unknown_field
  forms explain form_not_published")]
pub struct Explain {
    /// The code that stands in brackets after `error`
    code: Option<String>,
}

impl Explain {
    /// Prints what the code means and what to do.
    pub fn run(self, session: &Session) -> Result<(), CliError> {
        let Some(code) = &self.code else { return index(session) };
        let code = code.trim_matches(['[', ']']);
        let own = || own_codes().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning);
        let Some(meaning) = api::explain(code).or_else(own) else {
            let message = format!("there is no code `{code}`");
            let help = match similar(code, all_codes()) {
                Some(name) => format!("a similar code exists: {name}"),
                None => "forms explain lists all codes".to_owned(),
            };
            return Err(CliError::usage_with_help(message, help));
        };
        let status = Code::parse(code).map(Code::status);
        let text = || format!("{}\n", wrapped(meaning, 80));
        session.output.object(&json!({"code": code, "status": status, "meaning": meaning}), text)
    }
}

/// Lists all codes, each with the first sentence of what it means.
fn index(session: &Session) -> Result<(), CliError> {
    let entry = |code: &'static str| {
        let status = Code::parse(code).map(Code::status);
        let own = || own_codes().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning);
        json!({"code": code, "status": status, "meaning": api::explain(code).or_else(own)})
    };
    let codes: Vec<_> = all_codes().map(entry).collect();
    if session.output.format == Format::Csv || !session.output.columns.is_empty() {
        let rows: Result<Vec<_>, _> = codes.iter().map(value_of).collect();
        return session.output.rows(&Table::of_objects(&rows?, &session.output.columns));
    }
    let line = |entry: &Value| {
        let meaning = entry["meaning"].as_str().unwrap_or_default();
        let first = meaning.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let lines = wrapped(first, 74).replace('\n', "\n      ");
        format!("  {}\n      {lines}\n", entry["code"].as_str().unwrap_or_default())
    };
    session.output.object(&json!({"codes": codes}), || codes.iter().map(line).collect())
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
        let mut command = cli::command().mut_args(hinted).mut_subcommands(with_hints);
        clap_complete::generate(self.shell, &mut command, "forms", &mut script);
        let script = String::from_utf8_lossy(&script);
        match self.shell {
            Shell::Bash => session.output.write(&bash(&script)),
            _ => session.output.write(&script),
        }
    }
}

fn with_hints(command: clap::Command) -> clap::Command {
    command.mut_args(hinted).mut_subcommands(with_hints)
}

/// The argument with what its value names: files only where it takes some.
fn hinted(argument: Arg) -> Arg {
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let hint = match name.as_deref() {
        Some("FILE" | "PATH") => ValueHint::FilePath,
        Some("DIR") => ValueHint::DirPath,
        _ => ValueHint::Other,
    };
    if argument.get_action().takes_values() { argument.value_hint(hint) } else { argument }
}

/// What the script for bash does in place of offering flags and commands alike, and files where there are neither.
const BASH_OFFER: &str = "\
# Flags are offered where one has been begun, commands elsewhere, and files to the command that takes some.
_forms_offer() {
    local word words=\"\"
    for word in $2; do
        [[ $3 == -* || $word != -* ]] && words+=\"$word \"
    done
    COMPREPLY=( $(compgen -W \"$words\" -- \"$3\") )
    if [[ $3 != -* && $1 == forms__subcmd__validate ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=( $(compgen -f -- \"$3\") )
    fi
}

";

/// clap's script for bash with offers in a better order.
fn bash(script: &str) -> String {
    let offer = r#"_forms_offer "${cmd}" "${opts}" "${cur}""#;
    let script = script.replace(r#"COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )"#, offer);
    BASH_OFFER.to_owned() + &script.replace(" -o bashdefault -o default forms", " forms")
}
