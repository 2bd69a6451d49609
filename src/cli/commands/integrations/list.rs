//! `forms integrations list`.

use clap::Args;

use crate::api::{HealthState, IntegrationDetail};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::integrations::target;
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::cli::output::value_of;
use crate::client::ReceivedBody;
use crate::clock::Timestamp;

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
pub struct List {
    /// Form, by id or slug
    form: String,
}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let path = ["forms", &self.form, "integrations"];
        let integrations = session.client().await?.list(&path, "integrations").await?;
        let none = format!("no integrations: {} integrations create {}", session.command_prefix(), self.form);
        Listing::new(&session.output, "integrations", none, columns(session.now())).show_items(integrations)
    }
}

type Column<'a> = listing::Column<'a, ReceivedBody<IntegrationDetail>>;

fn columns<'a>(now: Timestamp) -> Vec<Column<'a>> {
    let target = |integration: &ReceivedBody<IntegrationDetail>| {
        value_of(integration).ok().and_then(|value| target(&value)).unwrap_or_default()
    };
    let events = |integration: &IntegrationDetail| {
        integration.events.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    vec![
        Column::new("name", |integration| Cell::text(&*integration.name)),
        Column::new("type", |integration| Cell::text(&*integration.kind)),
        Column::new("target", move |integration| Cell::text(target(integration))),
        Column::new("health", |integration| health_cell(integration)),
        Column::new("pending", |integration| Cell::number(integration.health.pending)),
        Column::new("dead", |integration| Cell::number(integration.health.dead)),
        Column::new("id", |integration| Cell::text(integration.id.to_string())).if_chosen(),
        Column::new("enabled", |integration| Cell::number(integration.enabled)).if_chosen(),
        Column::new("events", move |integration| Cell::text(events(integration))).if_chosen(),
        Column::new("last_success_at", move |integration| match integration.health.last_success_at {
            Some(time) => Cell::time(time, now),
            None => Cell::text("").with_display("never"),
        })
        .if_chosen(),
    ]
}

/// Returns the state: green, yellow while failing, red if paused. A terminal shows a disabled integration as such.
fn health_cell(integration: &IntegrationDetail) -> Cell {
    let state = &integration.health.state;
    let colour = match state.known() {
        Some(HealthState::Ok) => Color::DarkGreen,
        Some(HealthState::Failing) | None => Color::DarkYellow,
        Some(HealthState::Paused) => Color::DarkRed,
    };
    let cell = Cell::text(state.to_string());
    if integration.enabled { cell.with_colour(colour) } else { cell.with_display("disabled") }
}
