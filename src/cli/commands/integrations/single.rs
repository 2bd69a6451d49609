//! `forms integrations show`, `test` and `rotate-secret`.

use clap::Args;

use crate::api::{self, Attempt, IntegrationDetail, SecretRotated};
use crate::cli::commands::integrations::{ATTEMPT, INTEGRATION, One};
use crate::cli::commands::keys::{SHOWN_ONCE, revealed};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::values::grace;
use crate::cli::output::humanize::humanize;
use crate::cli::output::integrations::authoring;
use crate::cli::output::{Format, Output, fields, value_of, yaml};
use crate::client::ReceivedBody;
use crate::domain::delivery::attempt::AttemptResult;
use crate::domain::json::Value;

/// Show one integration and its health
#[derive(Debug, Args)]
#[command(after_long_help = "\
Secrets are not shown: only whether they are set, and the environment variable
that a form file takes them from. With -o yaml: the file that `integrations
create -f` takes, and the entry of a form file.

Examples:
  forms integrations show lunch webhook
  forms integrations show lunch webhook -o json | jq .health")]
pub struct Show {
    #[command(flatten)]
    which: One,
}

impl Run for Show {
    fn columns(&self) -> Columns {
        Columns::Fixed(&INTEGRATION)
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (client, One { form, integration: name }) = (session.client().await?, &self.which);
        let integration = client.get::<IntegrationDetail>(&["forms", form, "integrations", name]).await?;
        let value = value_of(&integration)?;
        if session.output.format == Format::Yaml {
            let entries = authoring(&Value::Array(vec![value]));
            let entry = entries.as_array().and_then(<[_]>::first).cloned();
            return session.output.data(&yaml::yaml(&entry.unwrap_or(Value::Null))?);
        }
        session.output.object(&integration, || summary(&value))
    }
}

fn summary(integration: &Value) -> String {
    let Value::Object(members) = integration else { return String::new() };
    let value = |(name, value): &(String, Value)| match (name.as_str(), value) {
        ("health" | "headers", Value::Object(members)) => {
            members.iter().map(|(name, value)| format!("{name}: {}\n", text(value))).collect()
        }
        // As --set takes it.
        ("when", _) => value.to_string(),
        _ => text(value),
    };
    fields(&members.iter().map(|member| (member.0.as_str(), Some(value(member)))).collect::<Vec<_>>())
}

/// Formats a value; of a secret, what is known of it.
fn text(value: &Value) -> String {
    let member = |name: &str| value.get(name).and_then(Value::as_str);
    if value.get("set") != Some(&Value::Bool(true)) {
        return humanize(value);
    }
    member("env").map_or_else(|| "set".to_owned(), |name| format!("set (from {name})"))
}

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
pub struct Test {
    #[command(flatten)]
    which: One,
}

impl Run for Test {
    const COLUMNS: Columns = ATTEMPT;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let One { form, integration: name } = self.which;
        let path = ["forms", &form, "integrations", &name, "test"];
        let attempt: ReceivedBody<Attempt> = session.client().await?.act(&path).await?;
        session.output.object(&attempt, || describe_attempt(&attempt, &session.output))?;
        match attempt.result.known() {
            Some(AttemptResult::Delivered) => Ok(()),
            _ => Err(CliError::TestFailed { summary: format!("the test of `{name}` failed") }),
        }
    }
}

fn describe_attempt(attempt: &Attempt, output: &Output) -> String {
    let error = attempt.error.as_ref().map(|error| format!("{} ({})", error.message, error.code));
    fields(&[
        ("result", Some(attempt.result.to_string())),
        ("status", attempt.http_status.map(|status| status.to_string())),
        ("duration", Some(format!("{} ms", attempt.duration_ms))),
        ("address", attempt.remote_address.clone()),
        ("error", error),
        ("response", attempt.response.as_ref().map(|text| output.fit(text.trim_end(), 10))),
    ])
}

/// Replace the signing secret of a webhook
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only the new secret, which the server does not show again. For --grace
the old one works too, so that the receiver can be changed in the meantime.

Examples:
  forms integrations rotate-secret lunch webhook > secret
  forms integrations rotate-secret lunch webhook --grace 7d > secret")]
pub struct RotateSecret {
    #[command(flatten)]
    which: One,
    /// How long the old secret still works, 0 for not at all
    #[arg(long, value_name = "TIME", value_parser = grace, default_value = "24h")]
    grace: String,
}

impl Run for RotateSecret {
    const COLUMNS: Columns = Columns::Fixed(&["secret", "previous_valid_until"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Self { which: One { form, integration }, grace } = self;
        let ends_at_once = grace == "0ms";
        let request = api::Rotate { grace: Some(grace) };
        let path = ["forms", &form, "integrations", &integration, "rotate-secret"];
        let rotated: ReceivedBody<SecretRotated> = session.client().await?.post(&path, &request).await?;
        let prefix = session.command_prefix();
        let help = format!("make another: {prefix} integrations rotate-secret {form} {integration}");
        let secret = revealed(rotated.secret.as_ref(), "the new secret", help)?;
        session.output.object(&rotated, || format!("{secret}\n"))?;
        session.output.success(&match ends_at_once {
            true => "The old secret no longer works".to_owned(),
            false => format!("The old secret works until {}", rotated.previous_valid_until),
        });
        session.output.status(SHOWN_ONCE);
        Ok(())
    }
}
