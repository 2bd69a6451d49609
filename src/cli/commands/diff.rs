//! `forms diff`: what `forms apply` would change.

use std::path::PathBuf;

use clap::Args;

use crate::cli::commands::planning::{plan_forms, read_forms};
use crate::cli::commands::report_format::ReportFormat;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::document::FormState;
use crate::cli::output::Format;
use crate::cli::plan::Plan;

/// Show what `forms apply` would change
#[derive(Debug, Args)]
#[command(after_long_help = "\
Compares form files with the forms of the server, which are found by their
slugs, and sends nothing: a key with the scope `read` is enough. Each line is
one change: + added, - removed, ~ changed, or moved. A change that touches
stored answers says how many. `!` marks those that are hidden until the question
or option is back, and those of another type than the question then has: only
the latter need `forms apply --allow-breaking`.

FILE may be a folder: all *.yaml, *.yml and *.json below it, without hidden
ones and *.test.yaml. Forms of the server that are in none of the files are
listed, and never deleted.

--format github writes Markdown for a comment on a pull request. -o json prints
{\"forms\", \"unmanaged\"}; a change has its path, its class (plain, hides or
retypes), the values before and after, and the number of answers.

Examples:
  forms diff -f survey.yaml
  forms diff -f forms/ --exit-code
  forms diff -f forms/ --format github > plan.md")]
pub struct Diff {
    /// Form files in YAML or JSON, or folders of them, - for standard input
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Plan to publish the forms whose files have no `status`
    #[arg(long)]
    publish: bool,
    /// Exit with code 1 if anything would change
    #[arg(long)]
    exit_code: bool,
    /// Format of the changes: text, json, github
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<ReportFormat>,
}

impl Run for Diff {
    const COLUMNS: Columns = Columns::Fixed(&["forms", "unmanaged"]);

    fn format(&self) -> Option<Format> {
        ReportFormat::output(self.format)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        ReportFormat::refuse_output(self.format, session)?;
        let documents = read_forms(session, &self.files).await?;
        let plan = plan_forms(session, &session.client().await?, documents, self.state()).await?;
        match self.format {
            Some(ReportFormat::Github) => {
                let line = plan.without_file().map(|line| format!("\n{line}\n")).unwrap_or_default();
                session.output.data(&(plan.markdown() + &line))?;
            }
            _ => session.output.object(&plan.to_json(), || plan.text(session.output.stdout_has_colour()))?,
        }
        report_unmanaged(session, &self.files, &plan);
        if self.exit_code && plan.has_changes() { Err(CliError::FormsDiffer) } else { Ok(()) }
    }
}

impl Diff {
    fn state(&self) -> Option<FormState> {
        self.publish.then_some(FormState::Published)
    }
}

/// Reports the forms of the server that are in no file, if a folder was named: all forms were meant then.
pub(super) fn report_unmanaged(session: &Session, files: &[PathBuf], plan: &Plan) {
    let without_file = plan.without_file().filter(|_| files.iter().any(|file| file.is_dir()));
    without_file.iter().for_each(|line| session.output.status(line));
}
