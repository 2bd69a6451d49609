//! Help that clap cannot generate: the commands by group, a note in the help of every command, and topics.

pub mod topics;

use clap::Args;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::json;

use crate::cli;
use crate::cli::commands::completions::candidates;
use crate::cli::commands::{CliError, Run, Session};
use crate::cli::output::{Format, wrap};
use crate::domain::integration::IntegrationType;
use crate::domain::validation::similar::similar;

use topics::{TOPICS, show_integration};

/// Last lines of the help of a command; the short help has only the first.
const NOTE: &str = "Global options (-o FORMAT, --columns, --data, --url, -q, ...): forms --help";
const MORE: &str = "Environment and exit codes: forms help environment, forms help exit-codes";

/// Global options that a command shows in its own help: the command, the option, and its help there.
const SHOWN: [(&str, &str, &str); 2] = [
    ("serve", "data", "Where forms, answers and keys are kept [env: FORMS_DATA]"),
    ("login", "key_file", "File with the API key, - for stdin; default: ask for it"),
];

/// Adds the groups of commands to the root's help, since clap has none.
pub(super) fn with_groups(command: clap::Command) -> clap::Command {
    command.help_template(include_str!("root.txt"))
}

/// Adds the note to the help, and the examples to the short help.
pub(super) fn with_note(command: clap::Command) -> clap::Command {
    let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let examples = text.find("Examples:").map_or("", |place| &text[place..]);
    command
        .after_help(format!("{examples}\n\n{NOTE}"))
        .after_long_help(format!("{text}\n\n{NOTE}\n{MORE}"))
        .mut_subcommands(with_note)
}

/// Hides the global options in the help of every command, except those of [`SHOWN`].
pub fn hide_globals(command: clap::Command) -> clap::Command {
    let globals = hidden_globals(&command);
    command.mut_subcommands(|command| hide(command, &globals))
}

/// Returns the global options of the root.
pub(super) fn hidden_globals(root: &clap::Command) -> Vec<clap::Arg> {
    root.get_arguments().filter(|argument| argument.is_global_set()).cloned().collect()
}

/// Hides the options `globals` in the help of one command.
pub(super) fn hide(command: clap::Command, globals: &[clap::Arg]) -> clap::Command {
    let name = command.get_name().to_owned();
    command.args(globals.iter().cloned().map(|argument| {
        let is_shown = |(own, id, _): &&(&str, &str, &str)| *own == name && argument.get_id() == *id;
        match SHOWN.iter().find(is_shown) {
            Some((.., help)) => argument.help(*help).help_heading(None).display_order(0),
            None => argument.hide(true),
        }
    }))
}

/// Show help on a command or a topic
#[derive(Debug, Args)]
#[command(after_long_help = "\
Topics are environment, exit-codes, formatting, integrations and questions.

Examples:
  forms help submit
  forms help responses list
  forms help integrations slack
  forms help exit-codes -o json")]
pub struct Help {
    /// A command, or a topic; after integrations, a type of these
    #[arg(add = ArgValueCandidates::new(topics_and_commands))]
    names: Vec<String>,
}

fn topics_and_commands() -> Vec<CompletionCandidate> {
    let commands = cli::command();
    let commands = commands.get_subcommands().map(|command| command.get_name().to_owned());
    candidates(TOPICS.iter().map(|topic| topic.name.to_owned()).chain(commands))
}

impl Run for Help {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        if let [name] = names[..]
            && let Some(topic) = TOPICS.iter().find(|topic| topic.name == name)
        {
            return topic.show(session);
        }
        if let ["integrations", name] = names[..]
            && let Some(integration_type) = IntegrationType::parse(name)
        {
            return show_integration(integration_type, session);
        }
        let mut command = hide_globals(cli::command());
        command.build();
        for &name in &names {
            command = command.find_subcommand(name).cloned().ok_or_else(|| unknown(name, &command))?;
        }
        let text = if names.is_empty() { command.render_help() } else { command.render_long_help() };
        if session.output.format != Format::Table {
            return session.output.object(&json!({"text": text.to_string()}), String::new);
        }
        session.output.help(&text.to_string(), &text.ansi().to_string(), false)
    }
}

/// Creates the error about a `name` that is neither a command below `command` nor a topic.
fn unknown(name: &str, command: &clap::Command) -> CliError {
    let commands = command.get_subcommands().map(clap::Command::get_name);
    if command.get_name() != "integrations" {
        let names = commands.chain(TOPICS.iter().map(|topic| topic.name));
        let help = similar(name, names).map(|name| format!("a similar name exists: {name}"));
        return CliError::Usage { message: format!("there is no command or topic `{name}`"), help };
    }
    let types = IntegrationType::ALL.map(IntegrationType::name);
    let near = similar(name, commands.chain(types)).map(|name| format!("a similar name exists: {name};\n"));
    let all = wrap(&format!("types are {}", types.join(", ")), 68);
    let message = format!("`{name}` is neither a command nor a type of integration");
    CliError::usage_with_help(message, near.unwrap_or_default() + &all)
}
