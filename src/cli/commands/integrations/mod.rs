//! `forms integrations`: commands on what a form sends elsewhere, one file each.

mod change;
mod create;
mod list;
mod members;
mod single;

use std::sync::LazyLock;

use clap::Args;

use crate::api::IntegrationDetail;
use crate::cli::commands::keys::SHOWN_ONCE;
use crate::cli::commands::{CliError, Columns, Session, subcommands};
use crate::cli::output::integrations::describe;
use crate::cli::output::value_of;
use crate::client::ReceivedBody;
use crate::domain::integration::IntegrationType;

use change::{Delete, Disable, Enable, Update};
use create::Create;
use list::List;
use single::{RotateSecret, Show, Test};

subcommands! {
    /// Set up what a form sends elsewhere: webhooks, chats, mail, files
    #[command(after_long_help = "\
An integration belongs to a form and gets every event that it is set to:
csv_file, google_sheets and matrix once, the other types at least once. What
fails is retried over days: `forms deliveries` shows it. The types and their
members are in `forms help integrations`.

Every integration can have name, enabled, events, when (a condition as in
show_if), fields ({only: [q1]} or {except: [q2]}) and retry ([5s, 5m]). In a
form file they are the list `integrations`.

Examples:
  forms integrations create lunch --webhook https://example.com/hooks > secret
  forms integrations create lunch --csv-file lunch.csv
  forms integrations list lunch
  forms integrations test lunch webhook")]
    pub enum Integrations {
        List(List),
        Show(Show),
        Create(Create),
        Update(Update),
        Delete(Delete),
        Enable(Enable),
        Disable(Disable),
        Test(Test),
        RotateSecret(RotateSecret),
    }
}

/// Columns of an integration: the members of all types.
static INTEGRATION: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut names = vec!["id", "name", "type", "enabled", "events", "when", "fields", "retry"];
    for member in IntegrationType::all_members() {
        if !names.contains(&member.name) {
            names.push(member.name);
        }
    }
    names.extend(["health", "created_at", "updated_at"]);
    names
});

/// Columns of an attempt.
const ATTEMPT: Columns = Columns::Fixed(&[
    "number",
    "trigger",
    "started_at",
    "duration_ms",
    "result",
    "http_status",
    "error",
    "response",
    "remote_address",
]);

/// One integration of a form.
#[derive(Debug, Args)]
struct One {
    /// Form, by id or slug
    form: String,
    /// Integration, by name or id
    #[arg(value_name = "NAME")]
    integration: String,
}

/// Several integrations of a form.
#[derive(Debug, Args)]
struct Several {
    /// Form, by id or slug
    form: String,
    /// Integrations, by name or id
    #[arg(required = true, value_name = "NAME")]
    integrations: Vec<String>,
}

/// Prints the secret that the server has made for an integration, or else its id, and reports what was `done`.
fn report(
    session: &Session,
    integration: &ReceivedBody<IntegrationDetail>,
    done: &str,
) -> Result<(), CliError> {
    let (output, secret) = (&session.output, integration.generated_secret());
    let id = || integration.id.to_string();
    output.object(integration, || secret.map_or_else(id, |secret| secret.reveal().clone()) + "\n")?;
    output.success(&format!("{done} {}", name(integration)?));
    if secret.is_some() {
        output.status(SHOWN_ONCE);
    }
    Ok(())
}

/// Returns name, type and target of an integration as text.
fn name(integration: &ReceivedBody<IntegrationDetail>) -> Result<String, CliError> {
    let described = describe(&value_of(integration)?);
    Ok(format!("`{}` ({described})", integration.name))
}
