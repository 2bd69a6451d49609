//! The commands, one file or folder each.
//!
//! To add one: a file with its arguments and a `run`, a variant and its arms in [`Command`], and its line in the list of
//! commands in [`help`].

mod batch;
mod block_on;
pub mod completions;
pub mod create;
pub mod edit;
pub mod explain;
pub mod help;
pub mod list;
pub mod publish;
pub mod responses;
pub mod serve;
pub mod show;
pub mod submit;
pub mod trash;
pub mod validate;
pub mod whoami;

use clap::{CommandFactory, Parser, Subcommand};

use block_on::block_on;

use crate::cli::connection::global_flags::Global;
use crate::cli::connection::session::Session;
use crate::cli::output::Format;
use crate::cli::output::columns::{Columns, DELETED, FORM, SUBMISSION};
use crate::cli::output::exit::CliError;

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Create(create::Create),
    Edit(edit::Edit),
    Show(show::Show),
    Validate(validate::Validate),
    Publish(publish::Publish),
    Unpublish(publish::Unpublish),
    Close(publish::Close),
    List(list::List),
    Delete(trash::Delete),
    Restore(trash::Restore),
    Submit(submit::Submit),
    Responses(responses::Responses),
    Serve(serve::Serve),
    Whoami(whoami::Whoami),
    Explain(explain::Explain),
    Completions(completions::Completions),
    Help(help::Help),
}

impl Command {
    pub fn run(self, session: &Session) -> Result<(), CliError> {
        match self {
            Self::Create(command) => block_on(session, command.run(session)),
            Self::Edit(command) => block_on(session, command.run(session)),
            Self::Show(command) => block_on(session, command.run(session)),
            Self::Validate(command) => command.run(session),
            Self::Publish(command) => block_on(session, command.run(session)),
            Self::Unpublish(command) => block_on(session, command.run(session)),
            Self::Close(command) => block_on(session, command.run(session)),
            Self::List(command) => block_on(session, command.run(session)),
            Self::Delete(command) => block_on(session, command.run(session)),
            Self::Restore(command) => block_on(session, command.run(session)),
            Self::Submit(command) => block_on(session, command.run(session)),
            Self::Responses(command) => block_on(session, command.run(session)),
            Self::Serve(command) => command.run(session),
            Self::Whoami(command) => block_on(session, command.run(session)),
            Self::Explain(command) => command.run(session),
            Self::Completions(command) => command.run(session),
            Self::Help(command) => command.run(session),
        }
    }

    /// Returns the columns that `--columns` can choose.
    pub fn columns(&self) -> Columns {
        match self {
            Self::Create(_) | Self::Edit(_) | Self::Show(_) | Self::Restore(_) => FORM,
            Self::Publish(_) | Self::Unpublish(_) | Self::Close(_) => FORM,
            Self::Delete(_) => DELETED,
            Self::Submit(_) => SUBMISSION,
            Self::List(_) => Columns::Dynamic,
            Self::Validate(command) => command.columns(),
            Self::Responses(command) => command.columns(),
            Self::Whoami(_) => Columns::Fixed(&["url", "data", "key", "workspace"]),
            Self::Explain(_) => Columns::Fixed(&["code", "status", "meaning"]),
            Self::Serve(_) | Self::Completions(_) | Self::Help(_) => Columns::None,
        }
    }

    /// Returns the output format that one of the command's own flags selects.
    pub fn format(&self) -> Option<Format> {
        if let Self::Validate(command) = self { command.format() } else { None }
    }
}

/// Build forms and collect answers, from a file, a script or a server
#[derive(Debug, Parser)]
#[command(
    name = "forms",
    version,
    about,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 80
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Returns the definition of the command line.
pub fn command() -> clap::Command {
    help::with_common(Cli::command())
}
