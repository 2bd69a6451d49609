//! The command line: parse, dispatch, print, and end with the exit code.
//!
//! `commands/` has a file or folder for each command. They share `input/` (form files, answers, the editor, prompts),
//! `output/` (tables, JSON, diagnostics, exit codes) and `connection/` (which server, which key), none of which knows a
//! command. None of the commands prints, asks or ends the process by itself.

pub mod commands;
pub mod connection;
pub mod environment;
pub mod input;
pub mod output;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::FromArgMatches;

use commands::{Cli, help};
use connection::session::Session;
use environment::Environment;
use output::exit::{CliError, Exit};
use output::{Colour, Format, Output, columns};

pub use commands::command;

/// Runs the command line `arguments`, the program's name first, and says how it ended.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let environment = Environment::of_process();
    let early = Output::new(early_format(&arguments), early_colour(&arguments), &environment);
    let command = || match parse(arguments) {
        Ok(cli) => match Environment::unreadable_variable() {
            None => dispatch(cli, environment),
            Some(name) => end(&early, &CliError::usage(format!("{name} is not valid UTF-8"))),
        },
        Err(error) => explain_usage(&early, &error),
    };
    // Nothing of a command is used after it has panicked.
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_| end(&early, &bug())).into()
}

fn bug() -> CliError {
    CliError::Failed {
        what: concat!("this is a bug in forms ", env!("CARGO_PKG_VERSION")).to_owned(),
        causes: vec!["please report it with the command and the lines above".to_owned()],
    }
}

fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut matches = help::brief(command()).try_get_matches_from(arguments)?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// Help and version are results; everything else that clap says is a mistake in the command line.
fn explain_usage(output: &Output, error: &clap::Error) -> Exit {
    let is_mistake = error.use_stderr();
    let text = error.render();
    if is_mistake && output.format != Format::Table {
        return end(output, &usage(&text.to_string()));
    }
    match output.help(&text.to_string(), &text.ansi().to_string(), is_mistake) {
        Ok(()) if is_mistake => Exit::Usage,
        Ok(()) => Exit::Done,
        Err(error) => end(output, &error),
    }
}

/// A mistake in the command line as a failure: clap says it in its first paragraph, and in a tip what would be right.
fn usage(text: &str) -> CliError {
    let what = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let message = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: ")).map(str::to_owned);
    CliError::Usage { message, help }
}

fn dispatch(cli: Cli, environment: Environment) -> Exit {
    let Cli { global, command } = cli;
    let mut output = Output::new(command.format().or(global.output), global.color, &environment);
    output.quiet = global.quiet;
    output.verbose = global.verbose;
    output.columns.clone_from(&global.columns);
    let resolved = columns::resolve(command.columns(), &mut output);
    let session = Session::new(global, environment, output);
    let ended = resolved.and_then(|()| command.run(&session));
    let finished = session.output.finish();
    match ended.map_err(|error| session.annotate(error)).and(finished) {
        Ok(()) => {
            session.output.flush_warnings();
            Exit::Done
        }
        Err(error) => end(&session.output, &error),
    }
}

fn end(output: &Output, error: &CliError) -> Exit {
    output.fail(error);
    error.exit()
}

/// `-o` as far as it can be known before the command line is understood: its mistakes are told in that format.
fn early_format(arguments: &[OsString]) -> Option<Format> {
    early(arguments, Some('o'), "--output")
}

/// `--color` likewise.
fn early_colour(arguments: &[OsString]) -> Colour {
    early(arguments, None, "--color").unwrap_or_default()
}

fn early<T: clap::ValueEnum>(arguments: &[OsString], short: Option<char>, long: &str) -> Option<T> {
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let found = arguments.iter().enumerate().find_map(|(place, argument)| {
        // Flags without a value may stand before one that has one: `-qo json`.
        let flags = || argument.strip_prefix('-').map(|flags| flags.trim_start_matches(['q', 'v', 'y']));
        let value = argument.strip_prefix(long).or_else(|| flags()?.strip_prefix(short?))?;
        match value.trim_start_matches('=') {
            "" => arguments.get(place + 1).copied(),
            value => Some(value),
        }
    });
    T::from_str(found?, false).ok()
}
