//! `forms results`: counts and averages of the answers to a form.

mod screen;

use std::time::Duration;

use clap::Args;
use tokio::time::sleep;

use crate::cli::commands::responses::filter::{self, WhereClause};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers;
use crate::cli::input::values::moment;
use crate::client::SubmissionQuery;

/// Show counts and averages of the answers to a form
#[derive(Debug, Args)]
#[command(after_long_help = "\
A percentage is of those who answered the question. -o json has all counts, as
the API sends them. `forms help responses list` has more about --where.

Examples:
  forms results lunch
  forms results lunch --since 7d --where colour=red
  forms results lunch --watch
  forms results lunch -o json | jq '.questions[] | {id, answered}'")]
pub struct Results {
    /// Form, by id or slug
    form: String,
    /// Only answers since this time: 2026-11-20, 2026-11-20T09:00:00Z, or 1d for the last day
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<String>,
    /// Only answers before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,
    /// Only those with this answer, such as colour=red or score.gte=4; repeat for more
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    clauses: Vec<WhereClause>,
    /// Only those with this text in an answer, ignoring case
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Draw again when answers come, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

impl Run for Results {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let output = &*session.output;
        if self.watch && !output.truncates_rows() {
            return Err(CliError::usage("--watch draws on a terminal, in the format table"));
        }
        let Self { form, since, until, clauses, search, watch } = self;
        let query =
            SubmissionQuery { since, until, q: search, answers: clauses, ..SubmissionQuery::default() };
        let client = session.client().await?;
        let asked = client.get_form(&form).await?;
        let questions = answers::parse_questions(&asked.questions);
        loop {
            let summary = client.get_summary(&form, &query).await;
            let summary = summary
                .map_err(|error| filter::in_flags(error.into(), &query.answers, &questions, &asked.title))?;
            let screen = || screen::draw(&summary, output.stdout_has_colour(), !query.is_empty());
            if !watch {
                return output.object(&summary, screen);
            }
            output.redraw(&screen())?;
            let mut newest = summary.summary.totals.last_at;
            while newest <= summary.summary.totals.last_at {
                sleep(Duration::from_secs(2)).await;
                let found = client.list_submissions(&form, &query, 1)?.next().await?.unwrap_or_default();
                newest = found.first().map(|found| found.submitted_at);
            }
        }
    }
}
