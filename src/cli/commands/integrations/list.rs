//! `forms integrations list`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::{HealthState, IntegrationDetail};
use crate::cli::commands::Run;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations::target;
use crate::cli::output::listing::{ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::cli::output::value_of;
use crate::client::ReceivedBody;
use crate::clock::Timestamp;
use crate::domain::json::Value;

/// List the integrations of a form
#[derive(Debug, Args)]
#[command(after_long_help = "\
The columns are name, type, target, health, pending and dead: the deliveries
that wait, and those that have failed for good. The target is where it sends
to; of a secret URL, the variable. Health is ok, failing, or paused: the
server has stopped calling the receiver. A terminal shows disabled instead if
the integration is not enabled. --columns can choose id, enabled, events and
last_success_at too.

Examples:
  forms integrations list frm_7k2m9q4x1abz
  forms integrations list lunch --columns name,health,last_success_at
  forms integrations list lunch -o json | jq '.integrations[].health'")]
pub(super) struct List {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
}

/// All columns, by their API names.
const COLUMNS: [&str; 10] =
    ["name", "type", "target", "health", "pending", "dead", "id", "enabled", "events", "last_success_at"];

/// Number of columns shown unless others are chosen.
const DEFAULT_COLUMNS: usize = 6;

impl Run for List {
    fn columns(&self) -> Columns {
        Columns::Dynamic
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let integrations = session.client().await?.list_integrations(&self.form).await?;
        let output = &*session.output;
        let (count, now) =
            (if output.columns.is_empty() { DEFAULT_COLUMNS } else { COLUMNS.len() }, session.now());
        let row = |one: &ReceivedBody<IntegrationDetail>| cells(one, now).into_iter().take(count).collect();
        let body = |list| Value::Object(vec![("integrations".to_owned(), Value::Array(list))]);
        let listing = Listing {
            output,
            list_limit: ListLimit::ALL,
            raw: false,
            headers: COLUMNS.iter().take(count).map(ToString::to_string).collect(),
            optional: "",
            none: format!("no integrations: {} integrations create {}", session.command_prefix(), self.form),
            row: &row,
            body: &body,
        };
        listing.show_items(&integrations)
    }
}

fn cells(integration: &ReceivedBody<IntegrationDetail>, now: Timestamp) -> [Cell; COLUMNS.len()] {
    let target = value_of(integration).ok().and_then(|value| target(&value));
    let events: Vec<_> = integration.events.iter().map(ToString::to_string).collect();
    let health = &integration.health;
    let success = health.last_success_at.map(|time| Cell::time(time, now));
    [
        Cell::text(&*integration.name),
        Cell::text(&*integration.kind),
        Cell::text(target.unwrap_or_default()),
        health_cell(integration),
        Cell::number(health.pending),
        Cell::number(health.dead),
        Cell::text(integration.id.to_string()),
        Cell::number(integration.enabled),
        Cell::text(events.join(", ")),
        success.unwrap_or_else(|| Cell::text("").with_display("never")),
    ]
}

/// Returns the state: green, yellow while failing, red if paused. A terminal shows a disabled integration as such.
fn health_cell(integration: &IntegrationDetail) -> Cell {
    let state = &integration.health.state;
    let colour = match state.known() {
        Some(HealthState::Ok) => 32,
        Some(HealthState::Failing) | None => 33,
        Some(HealthState::Paused) => 31,
    };
    let cell = Cell::text(state.to_string());
    if integration.enabled { cell.with_colour(colour) } else { cell.with_display("disabled") }
}
