//! `forms responses watch`: prints new submissions.

use std::cell::Cell as Flag;
use std::time::Duration;

use clap::Args;
use tokio::time::sleep;

use crate::api::SubmissionDetail;
use crate::cli::commands::responses::list::{Response, columns};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::target::Target;
use crate::cli::input::answers;
use crate::cli::input::values::duration;
use crate::cli::output::Format;
use crate::cli::output::listing::Listing;
use crate::client::{Client, ClientError, MAX_PAGE, ReceivedBody, SubmissionQuery};

/// Print new answers to a form as they come
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks the server for them again and again, until Ctrl-C; also while the server is
away. The columns are those of `forms responses list`; with -o json or -o jsonl
each is an object on one line.

Examples:
  forms responses watch lunch
  forms responses watch lunch -o jsonl | jq --unbuffered -r .answers.q1")]
pub(super) struct Watch {
    /// Form, by id or slug
    form: String,
    /// Pause between two requests
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    interval: Duration,
}

impl Run for Watch {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let output = &*session.output;
        if matches!(output.format, Format::Csv | Format::Yaml | Format::Xlsx) {
            return Err(CliError::usage("answers are lines: use -o table, -o json or -o jsonl"));
        }
        if matches!(session.target()?, Target::Data(_)) {
            let message = "--data cannot be used with this command: nobody else can store answers meanwhile";
            return Err(CliError::usage_with_help(message, "start a server: forms serve --data DIR"));
        }
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let keys = answers::answer_keys(&answers::parse_questions(&form.questions));
        let newest = client.list_submissions(&self.form, &SubmissionQuery::default(), 1)?.next().await?;
        let mut last = newest.unwrap_or_default().pop();
        output.status(&format!("waiting for answers to \"{}\", Ctrl-C stops", form.title));
        loop {
            match self.poll(session, &client, &keys, &mut last).await {
                Err(CliError::Client { error: error @ ClientError::Unreachable { .. }, .. }) => {
                    output.status(&format!("{error}; trying again"));
                }
                polled => polled?,
            }
            sleep(self.interval).await;
        }
    }
}

impl Watch {
    /// Prints the submissions after `last`, which becomes the last of them.
    async fn poll(
        &self,
        session: &Session,
        client: &Client,
        keys: &[Vec<String>],
        last: &mut Option<ReceivedBody<SubmissionDetail>>,
    ) -> Result<(), CliError> {
        let since = last.as_ref().map(|last| last.submitted_at.to_string());
        let query = SubmissionQuery { since, order: Some("asc"), ..SubmissionQuery::default() };
        let mut pages = client.list_submissions(&self.form, &query, MAX_PAGE)?;
        while let Some(mut page) = pages.next().await? {
            // `since` includes its moment.
            page.retain(|one| last.as_ref().is_none_or(|last| one.id > last.id));
            *last = page.last().cloned().or(last.take());
            print(session, keys, page)?;
        }
        Ok(())
    }
}

fn print(
    session: &Session,
    keys: &[Vec<String>],
    new: Vec<ReceivedBody<SubmissionDetail>>,
) -> Result<(), CliError> {
    let (output, has_others) = (&*session.output, Flag::new(false));
    match output.format {
        _ if new.is_empty() => Ok(()),
        Format::Table => {
            let columns = columns(keys, &has_others, false, session.now());
            let new = new.into_iter().map(Response::from).collect();
            Listing::new(output, "submissions", "", columns).show_items(new)
        }
        _ => output.json_lines(&new),
    }
}
