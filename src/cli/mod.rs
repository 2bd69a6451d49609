//! The command line: parse, dispatch, print, and end with the exit code.
//!
//! Each command is a file of its noun. None of them prints, asks or ends the process by itself: `output`, `prompt`
//! and `exit` do.

pub mod answers;
pub mod args;
pub mod columns;
pub mod context;
pub mod diagnostics;
pub mod document;
pub mod draft;
pub mod editor;
pub mod elsewhere;
pub mod environment;
pub mod exit;
pub mod failure;
pub mod file;
pub mod filter;
pub mod form;
pub mod github;
pub mod given;
pub mod help;
pub mod json;
pub mod listing;
pub mod local;
pub mod output;
pub mod prompt;
pub mod question_types;
pub mod runtime;
pub mod serve;
pub mod session;
pub mod several;
pub mod spelling;
pub mod submission;
pub mod table;
pub mod text;
pub mod tools;
pub mod trial;
pub mod violations;
pub mod words;

use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use tokio::signal::unix::{SignalKind, signal};

use args::{Cli, Command};
use environment::Environment;
use exit::{CliError, Exit};
use output::{Colour, Format, Output};
use session::Session;

/// The definition of the command line.
pub fn command() -> clap::Command {
    help::with_common(Cli::command())
}

/// Runs the command line `arguments`, the program's name first, and says how it ended.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let environment = Environment::of_process();
    let early = Output::new(early_format(&arguments), early_colour(&arguments), &environment);
    let command = || match parse(arguments) {
        Ok(cli) => match Environment::expect_utf8() {
            Ok(()) => dispatch(cli, environment),
            Err(error) => end(&early, &error),
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
    let resolved = columns::resolve(&command, &mut output);
    let session = Session::new(global, environment, output);
    let ended = resolved.and_then(|()| carry_out(&session, command));
    let finished = session.output.finish();
    match ended.map_err(|error| session.annotate(error)).and(finished) {
        Ok(()) => {
            session.output.flush_warnings();
            Exit::Done
        }
        Err(error) => end(&session.output, &error),
    }
}

fn carry_out(session: &Session, command: Command) -> Result<(), CliError> {
    match command {
        Command::Serve(serve) => serve.run(session),
        Command::Validate(validate) => validate.run(session),
        Command::Explain(explain) => explain.run(session),
        Command::Completions(completions) => completions.run(session),
        Command::Help(help) => help.run(session),
        Command::Create(create) => block_on(session, create.run(session)),
        Command::Edit(edit) => block_on(session, edit.run(session)),
        Command::Publish(publish) => block_on(session, publish.run(session)),
        Command::Unpublish(unpublish) => block_on(session, unpublish.run(session)),
        Command::Close(close) => block_on(session, close.run(session)),
        Command::List(list) => block_on(session, list.run(session)),
        Command::Show(show) => block_on(session, show.run(session)),
        Command::Delete(delete) => block_on(session, delete.run(session)),
        Command::Restore(restore) => block_on(session, restore.run(session)),
        Command::Submit(submit) => block_on(session, submit.run(session)),
        Command::Responses(responses) => block_on(session, responses.run(session)),
        Command::Whoami(whoami) => block_on(session, whoami.run(session)),
    }
}

fn end(output: &Output, error: &CliError) -> Exit {
    output.fail(error);
    error.exit()
}

/// Runs a command that talks to a server, until it ends or a signal ends it: then it is dropped, and what it holds is
/// restored or kept.
fn block_on(session: &Session, talk: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::io("cannot start", error))?;
    let ended = runtime.block_on(async {
        let ended = tokio::select! {
            // Signals first: they are listened for before anything is sent, and while the terminal is lent it is known
            // whose a Ctrl-C was.
            biased;
            ended = signalled(session) => Err(match ended {
                Ok(()) => CliError::Interrupted,
                Err(error) => CliError::io("cannot listen for signals", error),
            }),
            ended = suggesting(session, talk) => ended,
        };
        let closed = session.close().await;
        ended.and(closed)
    });
    // A question that nobody will answer must not keep the process.
    runtime.shutdown_background();
    ended
}

/// What `talk` comes to, its failure with what may have been meant.
async fn suggesting(
    session: &Session,
    talk: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    match talk.await {
        Err(error) => Err(session.suggest(error).await),
        done => done,
    }
}

/// Waits for a signal that ends the command: a Ctrl-C that is meant for it, SIGTERM or SIGHUP. The latter two are left
/// alone where nobody can be asked: there is nothing to restore or to keep, and `nohup` must work.
async fn signalled(session: &Session) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let interrupted = async {
        while interrupt.recv().await.is_some() && session.has_lent_terminal() {}
        Ok(())
    };
    let ended = async {
        if !session.may_ask() {
            return pending().await;
        }
        let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            _ = hangup.recv() => Ok(()),
        }
    };
    tokio::select! {
        ended = interrupted => ended,
        ended = ended => ended,
    }
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
