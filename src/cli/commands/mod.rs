//! The commands, one file or folder each.
//!
//! A command implements [`Run`] beside its arguments; its line in `commands!` adds it to the parser and to the help. Commands
//! of a group are declared by `subcommands!`.

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

use clap::{CommandFactory, Parser};

use block_on::read_input;

pub(super) use block_on::block_on;

use crate::cli::connection::global_flags::Global;
use crate::cli::connection::local_store::ignore_empty_variables;
use crate::cli::connection::session::Session;
use crate::cli::output::Format;
use crate::cli::output::columns::Columns;
use crate::cli::output::destination::Destination;
use crate::cli::output::exit::CliError;

/// A command of the command line.
pub trait Run {
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

    /// Whether it runs until a signal arrives, which it handles itself.
    fn is_server(&self) -> bool {
        false
    }

    /// Runs the command.
    fn run(self, session: &Session) -> impl Future<Output = Result<(), CliError>>;
}

/// Declares an enum of commands; running it runs the one that was given.
macro_rules! subcommands {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($command:ident($arguments:ty),)* }) => {
        $(#[$attribute])*
        #[derive(Debug, clap::Subcommand)]
        $visibility enum $name {
            $($command($arguments),)*
        }

        impl $crate::cli::commands::Run for $name {
            fn columns(&self) -> $crate::cli::output::columns::Columns {
                match self { $(Self::$command(command) => command.columns(),)* }
            }

            fn format(&self) -> Option<$crate::cli::output::Format> {
                match self { $(Self::$command(command) => command.format(),)* }
            }

            fn destination(&self) -> $crate::cli::output::destination::Destination<'_> {
                match self { $(Self::$command(command) => command.destination(),)* }
            }

            fn is_server(&self) -> bool {
                match self { $(Self::$command(command) => command.is_server(),)* }
            }

            async fn run(self, session: &Session) -> Result<(), CliError> {
                match self { $(Self::$command(command) => Box::pin(command.run(session)).await,)* }
            }
        }
    };
}
use subcommands;

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

/// Declares [`Command`], and the list of commands in the order of the help. A summary has at most 27 characters.
macro_rules! commands {
    ($($group:ident $module:ident::$name:ident $summary:literal,)*) => {
        subcommands! {
            /// All commands.
            pub enum Command {
                $($name($module::$name),)*
            }
        }

        /// Heading, name and summary of each command.
        const OVERVIEW: &[(Group, &str, &str)] = &[$((Group::$group, stringify!($name), $summary),)*];
    };
}

commands! {
    Write create::Create "create a form",
    Write edit::Edit "change a form",
    Write show::Show "show one form",
    Write validate::Validate "check files, offline",
    Run publish::Publish "open a form for answers",
    Run publish::Unpublish "return to draft",
    Run publish::Close "stop accepting answers",
    Run list::List "list forms",
    Run trash::Delete "move to the trash",
    Run trash::Restore "restore from the trash",
    Collect submit::Submit "send answers",
    Collect responses::Responses "read and delete answers",
    Operate serve::Serve "run the server",
    Operate workspaces::Workspaces "separate forms and keys",
    Operate keys::Keys "manage API keys",
    Operate integrations::Integrations "webhooks, chats, mail",
    Operate listen::Listen "receive webhooks here",
    Operate deliveries::Deliveries "list, repeat, cancel",
    Connect login::Login "store a server and a key",
    Connect context::Context "list and use contexts",
    Connect logout::Logout "remove a context",
    Connect whoami::Whoami "show server and key",
    Tools explain::Explain "explain an error code",
    Tools completions::Completions "set up a shell",
    Tools help::Help "help on a command or topic",
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
    help::with_common(Cli::command()).mut_subcommand("serve", ignore_empty_variables)
}
