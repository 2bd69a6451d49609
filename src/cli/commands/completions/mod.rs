//! `forms completions`, and the answers to the shells that ask for completions.

mod names;

use std::env;
use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli;
use crate::cli::commands::{Cli, CliError, Columns, Run, Session};

/// Variable with which a shell asks for completions instead of running a command.
const VARIABLE: &str = "FORMS_COMPLETE";

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

impl Run for Completions {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let mut script = Vec::new();
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell.to_string());
        let written =
            shell.map(|shell| shell.write_registration(VARIABLE, "forms", "forms", "forms", &mut script));
        written.transpose().map_err(|error| CliError::io("cannot write the script", error))?;
        let mut script = String::from_utf8_lossy(&script).into_owned();
        match self.shell {
            // Where nothing is offered, bash would offer files; and it must quote the values that are.
            Shell::Bash => {
                script =
                    script.replace("-o bashdefault", "-o filenames").replace("-F _clap_complete_", "-F _");
                script += include_str!("rejoin.bash");
            }
            // No space after `q1=`.
            Shell::Zsh => {
                let described = "[[ -n $keys ]] && _describe -V 'values' keys -S ''; [[ -n $other ]]";
                let key = "[[ $value == *= ]] && keys+=(\"$completion\") || other+=(";
                script = script.replace("[[ -n $other ]]", described).replace("other+=(", key);
                script = script.replace("dirs=()", "dirs=() keys=()");
            }
            _ => {}
        }
        session.output.write(&script)
    }
}

/// Prints completions if a shell asks for them. Returns whether it does.
pub fn complete(arguments: &[OsString]) -> bool {
    let command = || {
        let words: Vec<_> = arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
        // Bash and zsh also pass what follows the cursor.
        let place = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|place| place.parse().ok());
        let before = &words[..place.unwrap_or(words.len().saturating_sub(1)).min(words.len())];
        let columns = columns(before);
        let columns = move || candidates(columns.iter().map(ToString::to_string));
        // Commands and values first: options are offered after a dash, or if there is nothing else.
        let is_empty = words.get(before.len()).is_none_or(|word| word.is_empty());
        let command = if is_empty { without_options(cli::command()) } else { cli::command() };
        // An alias would take the place of its command.
        let command = match is_empty && before.len() == 1 {
            true => command.mut_subcommands(|command| command.visible_alias(None)),
            false => command,
        };
        let command = names::with_names(command, before);
        command.mut_arg("columns", |argument| argument.add(ArgValueCandidates::new(columns)))
    };
    let folder = env::current_dir().ok();
    let environment = CompleteEnv::with_factory(command).var(VARIABLE);
    // Without completions, the shell shows none.
    environment.try_complete(arguments, folder.as_deref()).unwrap_or(true)
}

/// Hides the options of all commands.
fn without_options(command: clap::Command) -> clap::Command {
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .mut_args(|argument| {
            let is_hidden = argument.is_hide_set() || !argument.is_positional();
            argument.hide(is_hidden)
        })
        .mut_subcommands(without_options)
}

/// Returns the columns of the command in `words`, which end with `--columns`.
fn columns(words: &[OsString]) -> &'static [&'static str] {
    let words = words.iter().take_while(|word| *word != "--columns");
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words);
    match matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(Cli { command, .. }) => match command.columns() {
            Columns::Fixed(names) => names,
            Columns::None | Columns::Dynamic => &[],
        },
        Err(_) => &[],
    }
}

/// Returns these values as completions.
pub(super) fn candidates(values: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    values.into_iter().map(CompletionCandidate::new).collect()
}
