//! `forms completions`.

use crate::cli;
use crate::cli::commands::Run;
use crate::cli::connection::session::Session;
use crate::cli::output::exit::CliError;
use clap::{Arg, Args, ValueHint};
use clap_complete::Shell;

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
        let mut command = with_hints(cli::command());
        clap_complete::generate(self.shell, &mut command, "forms", &mut script);
        let script = String::from_utf8_lossy(&script);
        match self.shell {
            Shell::Bash => session.output.write(&patch_bash(&script)),
            _ => session.output.write(&script),
        }
    }
}

fn with_hints(command: clap::Command) -> clap::Command {
    command.mut_args(with_value_hint).mut_subcommands(with_hints)
}

/// Sets what the argument's value is: files are completed only where a file is expected.
fn with_value_hint(argument: Arg) -> Arg {
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let hint = match name.as_deref() {
        Some("FILE" | "PATH") => ValueHint::FilePath,
        Some("DIR") => ValueHint::DirPath,
        _ => ValueHint::Other,
    };
    if argument.get_action().takes_values() { argument.value_hint(hint) } else { argument }
}

/// Helper for the bash script: clap's script offers flags and commands mixed, and files where there are neither.
const BASH_HELPER: &str = "\
# Completes flags after a dash, otherwise commands, and files for the command that takes them.
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

/// Changes clap's bash script to offer completions by context.
fn patch_bash(script: &str) -> String {
    let offer = r#"_forms_offer "${cmd}" "${opts}" "${cur}""#;
    let script = script.replace(r#"COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )"#, offer);
    BASH_HELPER.to_owned() + &script.replace(" -o bashdefault -o default forms", " forms")
}
