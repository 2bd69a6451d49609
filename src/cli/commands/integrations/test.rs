//! `forms integrations test`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::Attempt;
use crate::cli::commands::Run;
use crate::cli::commands::integrations::ATTEMPT;
use crate::cli::commands::integrations::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::output::Output;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::domain::delivery::attempt::AttemptResult;

/// Send a test event to an integration, and show the attempt
#[derive(Debug, Args)]
#[command(after_long_help = "\
The event has the type integration.test, is signed like the others, is not
repeated and has no effect on health. Chats and mail are really sent. A CSV file
is only checked; of a spreadsheet, only the first row is written, with the
titles. If the attempt fails it is still shown, and the exit code is 1.

Examples:
  forms integrations test lunch webhook
  forms integrations test lunch webhook -o json | jq .http_status")]
pub(super) struct Test {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Integration, by name or id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

impl Run for Test {
    fn columns(&self) -> Columns {
        ATTEMPT
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { form, name } = self;
        let attempt = session.client().await?.test_integration(&form, &name).await;
        let attempt = attempt.map_err(|error| with_list_hint(session, error, &form))?;
        session.output.object(&attempt, || summary(&attempt, &session.output))?;
        match attempt.result.known() {
            Some(AttemptResult::Delivered) => Ok(()),
            _ => Err(CliError::TestFailed { name }),
        }
    }
}

fn summary(attempt: &Attempt, output: &Output) -> String {
    let error = attempt.error.as_ref().map(|error| format!("{} ({})", error.message, error.code));
    let lines = [
        ("result", Some(attempt.result.to_string())),
        ("status", attempt.http_status.map(|status| status.to_string())),
        ("duration", Some(format!("{} ms", attempt.duration_ms))),
        ("address", attempt.remote_address.clone()),
        ("error", error),
        ("response", attempt.response.clone()),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        Some(format!("{:<10}{}\n", format!("{name}:"), output.fit(value?.trim_end(), 10)))
    };
    lines.into_iter().filter_map(line).collect()
}
