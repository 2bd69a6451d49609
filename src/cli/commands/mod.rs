//! The commands, one file or folder each.
//!
//! A command implements [`Run`] beside its arguments; its line in [`Command`] adds it to the parser. `help/root.txt` is the help
//! of them all.

pub mod apply;
pub mod ask;
mod batch;
mod block_on;
pub mod completions;
pub mod context;
pub mod create;
pub mod deliveries;
pub mod dev;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod erase;
pub mod explain;
pub mod help;
pub mod import;
pub mod init;
pub mod integrations;
pub mod keys;
pub mod list;
pub mod listen;
pub mod login;
pub mod man;
pub mod open;
mod page_links;
mod planning;
pub mod promote;
pub mod publish;
mod report_format;
pub mod responses;
pub mod results;
pub mod schema;
pub mod serve;
pub mod share;
pub mod show;
pub mod spam;
pub mod store;
pub mod submit;
pub mod test;
pub mod trash;
pub mod validate;
pub mod whoami;
pub mod workspaces;

use std::ffi::OsString;

use clap::builder::{NonEmptyStringValueParser, ValueParser};
use clap::{Arg, CommandFactory, Parser};

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
    /// The columns that `--columns` can choose.
    const COLUMNS: Columns = Columns::None;

    /// Returns these columns, or others if they depend on the arguments.
    fn columns(&self) -> Columns {
        Self::COLUMNS
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
    fn run(self, session: &Session) -> impl Future<Output = Result<(), CliError>>;
}

/// Declares an enum of commands; running it runs the one that was given.
macro_rules! subcommands {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident {
        $($(#[$of_command:meta])* $command:ident($arguments:ty),)*
    }) => {
        #[derive(Debug, clap::Subcommand)]
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$of_command])* $command($arguments),)*
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

            async fn run(self, session: &Session) -> Result<(), CliError> {
                match self { $(Self::$command(command) => Box::pin(command.run(session)).await,)* }
            }
        }
    };
}
use subcommands;

subcommands! {
    /// All commands, in the order of `help/root.txt`.
    pub enum Command {
        Init(init::Init),
        Create(create::Create),
        Edit(edit::Edit),
        Show(show::Show),
        Validate(validate::Validate),
        Test(test::Test),
        Diff(diff::Diff),
        Apply(apply::Apply),
        Dev(dev::Dev),
        Import(import::Import),
        Schema(schema::Schema),
        Promote(promote::Promote),
        Publish(publish::Publish),
        Unpublish(publish::Unpublish),
        Close(publish::Close),
        List(list::List),
        Delete(trash::Delete),
        Restore(trash::Restore),
        Open(open::Open),
        Share(share::Share),
        Submit(submit::Submit),
        Fill(submit::Fill),
        Ask(ask::Ask),
        Results(results::Results),
        Responses(responses::Responses),
        #[command(subcommand)]
        Spam(spam::Spam),
        Erase(erase::Erase),
        Serve(serve::Serve),
        #[command(subcommand)]
        Store(store::Store),
        #[command(subcommand)]
        Keys(keys::Keys),
        #[command(subcommand)]
        Workspaces(workspaces::Workspaces),
        #[command(subcommand)]
        Deliveries(deliveries::Deliveries),
        #[command(subcommand)]
        Integrations(integrations::Integrations),
        Doctor(doctor::Doctor),
        Listen(listen::Listen),
        Login(login::Login),
        #[command(subcommand)]
        Context(context::Context),
        Logout(context::Logout),
        Whoami(whoami::Whoami),
        Explain(explain::Explain),
        Completions(completions::Completions),
        Man(man::Man),
        Help(help::Help),
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
    help::with_groups(Cli::command()).mut_subcommands(complete)
}

/// Returns the definition of the command line for these `arguments`: commands that they do not name lack what only their own help
/// and arguments need. Completing all of them takes a fifth of a start's instructions.
pub(super) fn command_for(arguments: &[OsString]) -> clap::Command {
    let is_named = |command: &clap::Command| {
        let mut names = std::iter::once(command.get_name()).chain(command.get_all_aliases());
        names.any(|name| arguments.iter().any(|argument| argument == name))
    };
    let command = help::with_groups(Cli::command());
    let globals = help::hidden_globals(&command);
    command.mut_subcommands(|command| match is_named(&command) {
        true => help::hide(complete(command), &globals),
        false => command,
    })
}

/// Completes the definition of a command.
fn complete(command: clap::Command) -> clap::Command {
    let command = help::with_note(refuse_empty(command));
    match command.get_name() {
        "serve" | "doctor" => ignore_empty_variables(command),
        _ => command,
    }
}

/// Makes empty positional arguments usage errors: they come from variables that are not set.
fn refuse_empty(command: clap::Command) -> clap::Command {
    let is_text = |arg: &Arg| {
        let is_string = arg.get_value_parser().type_id() == ValueParser::string().type_id();
        is_string && arg.is_positional() && arg.get_possible_values().is_empty()
    };
    let refuse = |arg: Arg| match is_text(&arg) {
        true => arg.value_parser(NonEmptyStringValueParser::new()),
        false => arg,
    };
    command.mut_args(refuse).mut_subcommands(refuse_empty)
}
