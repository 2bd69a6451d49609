//! The command line: parses arguments, runs a command, and returns the exit code.
//!
//! `commands/` has a file or folder for each command. They share `input/` (form files, answers, the editor, prompts),
//! `output/` (tables, JSON, diagnostics, exit codes), `connection/` (server, key) and `plan/` (what a form and a file differ in),
//! none of which depends on a command.
//! Commands print, prompt and exit only through these.

pub mod commands;
pub mod connection;
pub mod environment;
pub mod input;
pub mod output;
pub mod plan;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use commands::{Cli, Run, block_on, completions};
use connection::hints;
use connection::session::Session;
use environment::Environment;
use output::exit::{CliError, Exit};
use output::shell_quote::shell_quote;
use output::{Output, columns};

pub use commands::command;

/// Runs the command line `arguments`, the program's name first, and returns the exit code.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    if completions::complete(&arguments) {
        return Exit::Done.into();
    }
    let environment = Environment::of_process();
    // Usage errors too have the format and colours that the command line selects.
    let colour = flag_value(&arguments, None, "--color").unwrap_or_default();
    let early = Output::new(flag_value(&arguments, Some('o'), "--output"), colour, &environment);
    let command = || match (parse(&arguments), Environment::unreadable_variable()) {
        (Ok(cli), None) => dispatch(cli, environment),
        (Ok(_), Some(name)) => end(&early, &CliError::usage(format!("{name} is not valid UTF-8"))),
        (Err(error), _) => match error.use_stderr().then(|| misplaced_command(&arguments)).flatten() {
            Some(misplaced) => end(&early, &misplaced),
            None => explain_usage(&early, &error),
        },
    };
    // No state of a command is used after it has panicked.
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_| end(&early, &bug())).into()
}

fn bug() -> CliError {
    CliError::Failed {
        message: concat!("this is a bug in forms ", env!("CARGO_PKG_VERSION")).to_owned(),
        causes: vec!["please report it with the command and the lines above".to_owned()],
    }
}

fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut matches = commands::command_for(arguments).try_get_matches_from(arguments)?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// Returns the error for `forms responses lunch show`: in a group, the command comes first.
fn misplaced_command(arguments: &[OsString]) -> Option<CliError> {
    let mut words: Vec<_> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let command = Cli::command();
    // The word after a flag may be its value, as in `--data store`.
    let is_value = |place: usize| place > 0 && words[place - 1].starts_with("--");
    let is_command = |place: &usize| command.find_subcommand(words[*place]).is_some() && !is_value(*place);
    let first = (0..words.len()).find(is_command)?;
    let group = command.find_subcommand(words[first])?;
    let is_command = |word: &&str| group.find_subcommand(word).is_some();
    let place = first + 1 + words[first + 1..].iter().position(is_command)?;
    if place == first + 1 {
        return None;
    }
    let name = words.remove(place);
    words.insert(first + 1, name);
    let right = words.into_iter().map(shell_quote).collect::<Vec<_>>().join(" ");
    let message = format!("`{name}` comes right after `{}`", group.get_name());
    Some(CliError::usage_with_help(message, format!("forms {right}")))
}

/// Prints what clap reports: help and version are results, all else is a usage error.
fn explain_usage(output: &Output, error: &clap::Error) -> Exit {
    let is_mistake = error.use_stderr();
    let text = error.render();
    if is_mistake && output.reports_json() {
        return end(output, &usage(&text.to_string()));
    }
    match output.help(&text.to_string(), &text.ansi().to_string(), is_mistake) {
        Ok(()) if is_mistake => Exit::Usage,
        Ok(()) => Exit::Done,
        Err(error) => end(output, &error),
    }
}

/// Converts clap's message to a usage error: the first paragraph is the message, a tip is the help.
pub(crate) fn usage(text: &str) -> CliError {
    let paragraph = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let message = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
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
    let opened = resolved.and_then(|()| output.open(command.destination()));
    let session = Session::new(global, environment, output);
    let ended = opened.and_then(|()| block_on(&session, command));
    let finished = session.output.finish();
    let ended = ended.map_err(|error| hints::annotate(&session, error)).and(finished);
    match ended.and_then(|()| session.output.save()) {
        Ok(()) => {
            session.output.flush_warnings();
            Exit::Done
        }
        Err(error) => end(&session.output, &error),
    }
}

fn end(output: &Output, error: &CliError) -> Exit {
    output.report_error(error);
    error.exit()
}

/// Returns the value of a flag without parsing the rest of the command line, which may be invalid.
fn flag_value<T: clap::ValueEnum>(arguments: &[OsString], short: Option<char>, long: &str) -> Option<T> {
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let found = arguments.iter().enumerate().find_map(|(place, argument)| {
        // Short flags without a value may precede it: `-qo json`.
        let flags = || argument.strip_prefix('-').map(|flags| flags.trim_start_matches(['q', 'v', 'y']));
        let value = argument.strip_prefix(long).or_else(|| flags()?.strip_prefix(short?))?;
        match value.trim_start_matches('=') {
            "" => arguments.get(place + 1).copied(),
            value => Some(value),
        }
    });
    T::from_str(found?, false).ok()
}
