//! `forms results`: counts and averages of the answers to a form.

mod screen;

use std::time::Duration;

use clap::Args;
use tokio::time::sleep;

use crate::api::FormSummary;
use crate::cli::commands::responses::filter::{self, WhereClause};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::target::Target;
use crate::cli::input::answers;
use crate::cli::input::values::moment;
use crate::client::{Client, ReceivedBody, SubmissionQuery};

/// Pause between two looks for new answers.
const INTERVAL: Duration = Duration::from_secs(2);

/// Show counts and averages of the answers to a form
#[derive(Debug, Args)]
#[command(after_long_help = "\
For each question: how many people answered it, and the counts of options, the
average and the median of numbers, the net promoter score, the latest texts. A
percentage is of those who answered the question. Options that the form no
longer has are marked as removed. -o json has the numbers as the API sends them.

--where takes QUESTION=VALUE or QUESTION.OPERATOR=VALUE, as `forms help responses
list` explains. --watch draws again when answers come, until Ctrl-C.

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
    const COLUMNS: Columns = Columns::None;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let output = &*session.output;
        if self.watch && !output.truncates_rows() {
            return Err(CliError::usage("--watch draws on a terminal: leave it out"));
        }
        if self.watch && matches!(session.target()?, Target::Data(_)) {
            let message = "--watch cannot be used with --data: nobody else can store answers meanwhile";
            return Err(CliError::usage_with_help(message, "start a server: forms serve --data DIR"));
        }
        let Self { form, since, until, clauses, search, watch } = self;
        let query =
            SubmissionQuery { since, until, q: search, answers: clauses, ..SubmissionQuery::default() };
        let client = session.client().await?;
        let summary = read(&client, &form, &query).await?;
        let colour = output.stdout_has_colour();
        if !watch {
            return output.object(&summary, || screen::draw(&summary, colour));
        }
        let mut shown = summary;
        loop {
            output.redraw(&screen::draw(&shown, colour))?;
            sleep(INTERVAL).await;
            let newest = client.list_submissions(&form, &query, 1)?.next().await?.unwrap_or_default();
            if newest.first().map(|newest| newest.submitted_at) > shown.summary.totals.last_at {
                shown = read(&client, &form, &query).await?;
            }
        }
    }
}

async fn read(
    client: &Client,
    form: &str,
    query: &SubmissionQuery,
) -> Result<ReceivedBody<FormSummary>, CliError> {
    let error = match client.get_summary(form, query).await {
        Ok(summary) => return Ok(summary),
        Err(error) => CliError::from(error),
    };
    // The questions are needed only to explain a filter.
    let Ok(form) = client.get_form(form).await else { return Err(error) };
    let questions = answers::parse_questions(&form.questions);
    Err(filter::in_flags(error, &query.answers, &questions, &form.title))
}
