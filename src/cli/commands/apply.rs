//! `forms apply`: makes the forms of the server those of the files.

use std::path::PathBuf;

use clap::Args;

use crate::cli::commands::diff::report_unmanaged;
use crate::cli::commands::planning::{ApplyOptions, RESULTS, apply_plan, plan_forms, read_forms};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::document::FormState;

/// Make the forms of the server match files
#[derive(Debug, Args)]
#[command(after_long_help = "\
Creates the forms that do not exist and changes those that differ; `forms diff`
shows what that is. A form is found by its slug, and a file is the whole form:
what is not in it is removed. Answers stay, also those to questions that are
removed. Prints for each form its id, slug, and created, updated or unchanged.

The state of a form stays as it is, and a new one is a draft, unless the file
has `status: draft`, `published` or `closed`, or --publish is given, which is
for files without one.

All files are checked before the first request, and the server checks all
changes before the first is stored. A form that others change in the meantime
is not overwritten: exit code 5, or 8 if other forms were changed. Another type
of a question that has answers needs --allow-breaking, or a yes on a terminal.
Forms without a file are never deleted.

FILE may be a folder: all *.yaml, *.yml and *.json below it, without hidden
ones and *.test.yaml.

Examples:
  forms apply -f survey.yaml
  forms apply -f forms/ --publish --no-input
  forms apply -f forms/ --dry-run")]
pub struct Apply {
    /// Form files in YAML or JSON, or folders of them, - for standard input
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Publish the forms whose files have no `status`
    #[arg(long)]
    publish: bool,
    /// Allow other types of questions that have answers
    #[arg(long)]
    allow_breaking: bool,
    /// Let the server check it, store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Apply {
    const COLUMNS: Columns = RESULTS;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let documents = read_forms(session, &self.files).await?;
        let state = self.publish.then_some(FormState::Published);
        let plan = {
            // Only a dry run needs a store that exists. The client ends before a question is asked.
            let client = if self.dry_run { session.client().await? } else { session.connect().await? };
            plan_forms(session, &client, documents, state).await?
        };
        if plan.has_changes() {
            plan.text(false).lines().for_each(|line| session.output.status(line));
        }
        report_unmanaged(session, &self.files, &plan);
        let options = ApplyOptions { allow_breaking: self.allow_breaking, dry_run: self.dry_run };
        apply_plan(session, &plan, options).await
    }
}
