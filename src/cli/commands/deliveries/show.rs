//! `forms deliveries show`.

use clap::Args;

use crate::api::{Attempt, DeliveryDetail};
use crate::cli::commands::deliveries::{DELIVERY, integration_name};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::cli::output::{Format, Output, fields, visible};
use crate::client::ReceivedBody;
use crate::clock::Timestamp;
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
pub struct Show {
    /// Delivery, by id: `forms deliveries list` shows it
    #[arg(value_name = "ID")]
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
        let (client, output, id) = (session.client().await?, &*session.output, self.delivery.as_str());
        let attempts = ["deliveries", id, "attempts"];
        if self.body {
            return output.bytes(&client.get_bytes(&["deliveries", id, "event"]).await?);
        }
        if self.attempts {
            return show_attempts(session, client.list(&attempts, "attempts").await?);
        }
        let delivery = client.get::<DeliveryDetail>(&["deliveries", id]).await?;
        if output.format != Format::Table || !output.columns.is_empty() {
            return output.object(&delivery, String::new);
        }
        let attempts = client.list::<Attempt>(&attempts, "attempts").await?;
        let attempts: String = attempts.iter().map(|attempt| attempt_lines(attempt, output)).collect();
        let title = if attempts.is_empty() { "" } else { "attempts:\n" };
        output.write(&(summary(&delivery) + title + &attempts))
    }
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
    let kind = delivery.integration.kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let event = &delivery.event;
    fields(&[
        ("id", Some(delivery.id.to_string())),
        ("status", Some(delivery.status.to_string())),
        ("event", Some(format!("{} {}", event.event_type, event.id))),
        ("form", Some(delivery.form_id.to_string())),
        ("submission", delivery.submission_id.map(|id| id.to_string())),
        ("integration", Some(integration_name(delivery) + &kind)),
        ("to", delivery.to.clone()),
        ("created", Some(delivery.created_at.to_string())),
        ("next attempt", delivery.next_attempt_at.map(|time| time.to_string())),
        ("finished", delivery.finished_at.map(|time| time.to_string())),
    ])
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
