//! `forms deliveries show`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::{Attempt, DeliveryDetail};
use crate::cli::commands::Run;
use crate::cli::commands::deliveries::DELIVERY;
use crate::cli::commands::list_hint::with_list_hint;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::cli::output::{Format, Output, visible};
use crate::client::{ClientError, ReceivedBody};
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::delivery::attempt::AttemptResult;

/// Show one delivery with its attempts, or the body that is sent
#[derive(Debug, Args)]
#[command(after_long_help = "\
--attempts prints only the attempts, with the columns number, started_at,
trigger, result, http_status, duration_ms and error; --columns can choose
response and remote_address too; the delivery in -o json is without them. --body
prints the exact bytes of the body.

Examples:
  forms deliveries show dlv_01k3v8m2f4q6s8t0w2y4z6a8bc
  forms deliveries show dlv_01k3v8m2f4q6s8t0w2y4z6a8bc --attempts -o jsonl
  forms deliveries show dlv_01k3v8m2f4q6s8t0w2y4z6a8bc --body | jq .")]
pub(super) struct Show {
    /// Delivery, by id: `forms deliveries list` shows it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    delivery: String,
    /// Only the attempts
    #[arg(long, conflicts_with = "body")]
    attempts: bool,
    /// Only the body that is sent
    #[arg(long)]
    body: bool,
}

impl Run for Show {
    fn columns(&self) -> Columns {
        match self {
            Self { body: true, .. } => Columns::None,
            Self { attempts: true, .. } => Columns::Dynamic,
            Self { .. } => DELIVERY,
        }
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let output = &*session.output;
        let refused = |error| with_list_hint(session, error, "deliveries");
        if self.body {
            if output.format == Format::Csv {
                return Err(CliError::usage("--body prints the body as it is sent, not as CSV"));
            }
            let body = match client.get_delivery_event(&self.delivery).await {
                Err(error) if error.status() == Some(404) => {
                    let found = client.get_delivery(&self.delivery).await;
                    return Err(found.map_or_else(refused, |delivery| without_body(&delivery, error)));
                }
                body => body.map_err(refused)?,
            };
            return output.data(&(String::from_utf8_lossy(&body) + "\n"));
        }
        if self.attempts {
            let attempts = client.list_attempts(&self.delivery).await.map_err(refused)?;
            return show_attempts(session, attempts);
        }
        let delivery = client.get_delivery(&self.delivery).await.map_err(refused)?;
        if output.format != Format::Table || !output.columns.is_empty() {
            return output.object(&delivery, String::new);
        }
        let attempts = client.list_attempts(&self.delivery).await.map_err(refused)?;
        let attempts: String = attempts.iter().map(|attempt| attempt_lines(attempt, output)).collect();
        let title = if attempts.is_empty() { "" } else { "attempts:\n" };
        output.write(&(summary(&delivery) + title + &attempts))
    }
}

/// Converts the error about the body of a `delivery` that exists.
fn without_body(delivery: &DeliveryDetail, error: ClientError) -> CliError {
    let ClientError::Problem(mut problem) = error else { return error.into() };
    problem.detail = Some(match delivery.status.known() {
        Some(DeliveryStatus::Skipped) => "a delivery that was skipped has no body".to_owned(),
        _ => "the delivery has no body any more: its submission or form was erased".to_owned(),
    });
    ClientError::Problem(problem).into()
}

fn show_attempts(session: &Session, attempts: Vec<ReceivedBody<Attempt>>) -> Result<(), CliError> {
    let columns = columns(session.now());
    Listing::new(&session.output, "attempts", "no attempts yet", columns).show_items(attempts)
}

type Column<'a> = listing::Column<'a, ReceivedBody<Attempt>>;

fn columns<'a>(now: Timestamp) -> Vec<Column<'a>> {
    let text = |text: Option<&String>| text.map_or_else(Cell::empty, Cell::text);
    let colour = |attempt: &Attempt| match attempt.result.known() {
        Some(AttemptResult::Delivered) => Color::DarkGreen,
        _ => Color::DarkRed,
    };
    vec![
        Column::new("number", |attempt| Cell::number(attempt.number)),
        Column::new("started_at", move |attempt| Cell::time(attempt.started_at, now)),
        Column::new("trigger", |attempt| Cell::text(attempt.trigger.to_string())),
        Column::new("result", move |attempt| {
            Cell::text(attempt.result.to_string()).with_colour(colour(attempt))
        }),
        Column::new("http_status", |attempt| attempt.http_status.map_or_else(Cell::empty, Cell::number)),
        Column::new("duration_ms", |attempt| Cell::number(attempt.duration_ms)),
        Column::new("error", move |attempt| text(attempt.error.as_ref().map(|error| &error.message))),
        Column::new("response", move |attempt| text(attempt.response.as_ref())).if_chosen(),
        Column::new("remote_address", move |attempt| text(attempt.remote_address.as_ref())).if_chosen(),
    ]
}

fn summary(delivery: &DeliveryDetail) -> String {
    let integration = &delivery.integration;
    let name = integration.name.clone().unwrap_or_else(|| integration.id.to_string());
    let kind = integration.kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let lines = [
        ("id", Some(delivery.id.to_string())),
        ("status", Some(delivery.status.to_string())),
        ("event", Some(format!("{} {}", delivery.event.event_type, delivery.event.id))),
        ("form", Some(delivery.form_id.to_string())),
        ("submission", delivery.submission_id.map(|id| id.to_string())),
        ("integration", Some(format!("{name}{kind}"))),
        ("created", time(Some(delivery.created_at))),
        ("next attempt", time(delivery.next_attempt_at)),
        ("finished", time(delivery.finished_at)),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        Some(format!("{:<14}{}\n", format!("{name}:"), visible(&value?)))
    };
    lines.into_iter().filter_map(line).collect()
}

/// Formats an attempt, with the receiver's response below it, on one line of a terminal.
fn attempt_lines(attempt: &Attempt, output: &Output) -> String {
    let Attempt { number, started_at, result, duration_ms, .. } = attempt;
    let status = attempt.http_status.map(|status| format!(" {status}")).unwrap_or_default();
    let error = attempt.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    let line = format!("{number}  {started_at}  {result}{status} in {duration_ms} ms{error}");
    let response = attempt.response.as_ref().filter(|response| !response.trim().is_empty());
    let response = response.map(|text| format!("     {}\n", output.fit(text.trim(), 5))).unwrap_or_default();
    format!("  {}\n{response}", visible(&line))
}
