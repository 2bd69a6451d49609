//! `forms responses`: commands on submissions, one file each.

mod edit;
mod export;
mod export_table;
pub(in crate::cli::commands) mod filter;
mod history;
pub(in crate::cli::commands) mod list;
mod show;
pub(in crate::cli::commands) mod trash;
mod watch;

use clap::Args;

use crate::cli::commands::{CliError, Columns, Run, Session, subcommands};
use crate::cli::output::destination::Destination;

use edit::Edit;
use export::Export;
use history::History;
use list::List;
use show::Show;
use trash::{Delete, Restore};
use watch::Watch;

/// List, export, edit and delete the answers to a form
#[derive(Debug, Args)]
#[command(
    visible_alias = "submissions",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "\
`forms responses FORM` is short for `forms responses list FORM`; `forms help
responses list` has more about --where.

Examples:
  forms responses frm_7k2m9q4x1abz
  forms responses frm_7k2m9q4x1abz -o csv > answers.csv
  forms responses export --all --to exports
  forms responses frm_7k2m9q4x1abz -o jsonl | jq -r .answers.q1"
)]
pub struct Responses {
    #[command(subcommand)]
    command: Option<ResponsesCommand>,
    #[command(flatten)]
    list: Option<List>,
}

subcommands! {
    enum ResponsesCommand {
        List(List),
        Show(Show),
        Watch(Watch),
        Export(Export),
        Edit(Edit),
        History(History),
        Delete(Delete),
        Restore(Restore),
    }
}

impl Run for Responses {
    fn columns(&self) -> Columns {
        match (&self.command, &self.list) {
            (Some(command), _) => command.columns(),
            (None, Some(list)) => list.columns(),
            (None, None) => Columns::None,
        }
    }

    fn destination(&self) -> Destination<'_> {
        match (&self.command, &self.list) {
            (Some(command), _) => command.destination(),
            (None, Some(list)) => list.destination(),
            (None, None) => Destination::Stdout,
        }
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        match (self.command, self.list) {
            (Some(command), _) => command.run(session).await,
            (None, Some(list)) => list.run(session).await,
            (None, None) => Err(CliError::usage("expected a form: forms responses FORM")),
        }
    }
}
