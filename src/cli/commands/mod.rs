//! The commands, one file or folder each.
//!
//! A command implements [`Run`] beside its arguments; its line in `commands!` adds it to the parser and to the help.

mod batch;
mod block_on;
pub mod completions;
pub mod context;
pub mod create;
pub mod deliveries;
pub mod edit;
pub mod explain;
pub mod help;
pub mod integrations;
pub mod keys;
pub mod list;
mod list_hint;
pub mod listen;
pub mod login;
pub mod logout;
pub mod publish;
pub mod responses;
pub mod serve;
pub mod show;
pub mod submit;
pub mod trash;
pub mod validate;
pub mod whoami;
pub mod workspaces;

use clap::{CommandFactory, Parser, Subcommand};

use block_on::{block_on, read_input};

use crate::cli::connection::global_flags::Global;
use crate::cli::connection::session::Session;
use crate::cli::output::Format;
use crate::cli::output::columns::Columns;
use crate::cli::output::destination::Destination;
use crate::cli::output::exit::CliError;

/// A command of the command line.
pub trait Run {
    /// Heading and summary in the list of commands; the summary has at most 27 characters.
    const ENTRY: (Group, &str);

    /// Returns the columns that `--columns` can choose.
    fn columns(&self) -> Columns {
        Columns::None
    }

    /// Returns the output format that one of the command's own flags selects.
    fn format(&self) -> Option<Format> {
        None
    }

    /// Returns where the command can write its result.
    fn destination(&self) -> Destination<'_> {
        Destination::Stdout
    }

    /// Runs the command.
    fn run(self, session: &Session) -> Result<(), CliError>;
}

/// A heading in the list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Write,
    Run,
    Collect,
    Operate,
    Connect,
    Tools,
}

/// Declares [`Command`], and the list of commands in the order of the help.
macro_rules! commands {
    ($($module:ident::$name:ident,)*) => {
        /// All commands.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($name($module::$name),)*
        }

        impl Command {
            /// Returns the columns that `--columns` can choose.
            pub fn columns(&self) -> Columns {
                match self { $(Self::$name(command) => command.columns(),)* }
            }

            /// Returns the output format that one of the command's own flags selects.
            pub fn format(&self) -> Option<Format> {
                match self { $(Self::$name(command) => command.format(),)* }
            }

            /// Returns where the command can write its result.
            pub fn destination(&self) -> Destination<'_> {
                match self { $(Self::$name(command) => command.destination(),)* }
            }

            /// Runs the command.
            pub fn run(self, session: &Session) -> Result<(), CliError> {
                match self { $(Self::$name(command) => command.run(session),)* }
            }
        }

        /// Heading, name and summary of each command.
        const OVERVIEW: &[(Group, &str, &str)] =
            &[$(($module::$name::ENTRY.0, stringify!($name), $module::$name::ENTRY.1),)*];
    };
}

commands! {
    create::Create,
    edit::Edit,
    show::Show,
    validate::Validate,
    publish::Publish,
    publish::Unpublish,
    publish::Close,
    list::List,
    trash::Delete,
    trash::Restore,
    submit::Submit,
    responses::Responses,
    serve::Serve,
    workspaces::Workspaces,
    keys::Keys,
    integrations::Integrations,
    listen::Listen,
    deliveries::Deliveries,
    login::Login,
    context::Context,
    logout::Logout,
    whoami::Whoami,
    explain::Explain,
    completions::Completions,
    help::Help,
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
