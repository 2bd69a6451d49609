//! Help that clap cannot write: the grouped list of commands, and pages that belong to no command.

use std::fmt::Write as _;

use clap::Subcommand;

use crate::cli::environment::VARIABLES;
use crate::cli::exit::Exit;

/// The root's help. clap has no groups of commands (its issue 1553), so they stand here by hand, and a test compares
/// them with the commands there are.
pub const ROOT_TEMPLATE: &str = "\
forms — build forms and collect answers, from a file, a script or a server

Usage: forms [OPTIONS] <COMMAND>

WRITE     create       create a form                validate     check files, offline
RUN       publish      open a form for answers      unpublish    back to draft
          list         list forms                   show         show one form
          delete       move a form to the trash
COLLECT   submit       send answers                 responses    list and show answers
OPERATE   serve        run the server
CONNECT   whoami       show server, key, workspace
TOOLS     explain      what an error code means     completions  set up a shell
          help         help on a command or topic

{options}
{after-help}";

/// What follows the root's help.
pub const ROOT_AFTER: &str = "\
Examples:
  forms serve --data ./store
  id=$(forms create -f survey.yaml)
  forms publish $id
  forms submit $id q1=hello
  forms responses $id

Topics: forms help environment, forms help exit-codes, forms help formatting";

/// Pages of help that are no commands; each prints itself.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Topic {
    /// Environment variables
    #[command(hide = true, help_template = "{about}", long_about = environment())]
    Environment,
    /// Exit codes
    #[command(hide = true, help_template = "{about}", long_about = exit_codes())]
    ExitCodes,
    /// Output formats
    #[command(hide = true, help_template = "{about}", long_about = FORMATTING)]
    Formatting,
}

impl Topic {
    /// The page.
    pub fn text(self) -> String {
        match self {
            Self::Environment => environment(),
            Self::ExitCodes => exit_codes(),
            Self::Formatting => FORMATTING.to_owned(),
        }
    }
}

fn environment() -> String {
    let mut text =
        "Environment variables. A flag wins over a variable; an empty variable counts as not set.\n\n"
            .to_owned();
    for (name, meaning) in VARIABLES {
        let _infallible = writeln!(text, "  {name:<19} {meaning}");
    }
    text + "
Address: --url, then FORMS_URL, then a server of this user that is running,
then http://127.0.0.1:8787. Key: --key-file, then FORMS_API_KEY, then
FORMS_API_KEY_FILE, then the key of that server. `forms whoami` shows what was
found, and where.
"
}

fn exit_codes() -> String {
    let mut text =
        "Exit codes. Only 0 is success; only after 7 and 8 is it worth trying the same again.\n\n".to_owned();
    for exit in Exit::ALL {
        let _infallible = writeln!(text, "  {:>3}  {}", exit.code(), exit.meaning());
    }
    text + "\nWith -o json the number is also the member `exit` of the error.\n"
}

const FORMATTING: &str = "\
Output formats. Results go to stdout, everything else to stderr.

  -o table   columns on a terminal; tab-separated and whole in a pipe
  -o json    the API's answer as one JSON document, all pages
  -o jsonl   one JSON object a line, all pages
  -o csv     with a header, all pages; what a spreadsheet would run gets a '
  -o yaml    YAML; of `forms show`, a file to create the form from

With a format other than table a failure leaves stdout empty and writes one
line of JSON to stderr: the problem document of the API, with `exit`, `hint`
and, where a file was read, `line` and `column`.

Colours: --color, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then
whether the stream is a terminal and TERM is not `dumb`.

Control characters in titles and answers are shown as \\u{1b} on a terminal
and in tables.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::ROOT_TEMPLATE;
    use crate::cli::args::Cli;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut command = Cli::command();
        command.build();
        let list = ROOT_TEMPLATE.split("<COMMAND>").nth(1).unwrap();
        let cells: Vec<_> = list.lines().flat_map(|line| line.split("  ")).map(str::trim).collect();
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let places = cells.iter().filter(|cell| **cell == name).count();
            assert_eq!(places, 1, "{name} must stand once in the groups of the root's help");
        }
    }
}
