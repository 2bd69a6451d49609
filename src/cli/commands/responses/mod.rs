//! `forms responses`: commands on submissions, one file each.

mod filter;
mod list;
mod show;
mod trash;

use clap::{Args, Subcommand};

use crate::cli::commands::{Group, Run, block_on};
use crate::cli::connection::session::Session;
use crate::cli::output::columns::{Columns, DELETED, SUBMISSION};
use crate::cli::output::destination::Destination;
use crate::cli::output::exit::CliError;

use list::List;
use show::Show;
use trash::{Delete, Restore};

/// List, show, delete and restore the answers to a form
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
  forms responses frm_7k2m9q4x1abz -o xlsx --to answers.xlsx
  forms responses frm_7k2m9q4x1abz -o jsonl | jq -r .answers.q1"
)]
pub struct Responses {
    #[command(subcommand)]
    command: Option<ResponsesCommand>,
    #[command(flatten)]
    list: Option<List>,
}

#[derive(Debug, Subcommand)]
enum ResponsesCommand {
    List(List),
    Show(Show),
    Delete(Delete),
    Restore(Restore),
}

impl Run for Responses {
    const ENTRY: (Group, &str) = (Group::Collect, "read and delete answers");

    fn columns(&self) -> Columns {
        match &self.command {
            Some(ResponsesCommand::Restore(_)) => SUBMISSION,
            Some(ResponsesCommand::Delete(_)) => DELETED,
            Some(ResponsesCommand::List(_) | ResponsesCommand::Show(_)) | None => Columns::Dynamic,
        }
    }

    fn destination(&self) -> Destination<'_> {
        match (&self.command, &self.list) {
            (Some(ResponsesCommand::List(list)), _) | (None, Some(list)) => list.destination(),
            _ => Destination::Stdout,
        }
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Responses {
    async fn execute(self, session: &Session) -> Result<(), CliError> {
        match (self.command, self.list) {
            (Some(ResponsesCommand::Show(show)), _) => show.run(session).await,
            (Some(ResponsesCommand::Delete(delete)), _) => delete.run(session).await,
            (Some(ResponsesCommand::Restore(restore)), _) => restore.run(session).await,
            (Some(ResponsesCommand::List(list)), _) | (None, Some(list)) => list.run(session).await,
            (None, None) => Err(CliError::usage("expected a form: forms responses FORM")),
        }
    }
}
