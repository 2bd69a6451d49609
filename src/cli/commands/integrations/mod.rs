//! `forms integrations`: commands on what a form sends elsewhere, one file each.

mod create;
mod delete;
mod enable;
mod list;
mod members;
mod rotate_secret;
mod secret_sources;
mod show;
mod test;
mod update;

use std::sync::LazyLock;

use clap::Args;

use crate::api::{Code, IntegrationDetail};
use crate::cli::commands::subcommands;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations::describe;
use crate::cli::output::value_of;
use crate::client::{ClientError, ReceivedBody};
use crate::domain::integration::IntegrationType;

use create::Create;
use delete::Delete;
use enable::{Disable, Enable};
use list::List;
use rotate_secret::RotateSecret;
use show::Show;
use test::Test;
use update::Update;

/// Set up what a form sends elsewhere: webhooks, chats, mail, files
#[derive(Debug, Args)]
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
pub struct Integrations {
    #[command(subcommand)]
    command: IntegrationsCommand,
}

subcommands! {
    enum IntegrationsCommand of Integrations {
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
pub(super) const ATTEMPT: Columns = Columns::Fixed(&[
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

/// Reminds the user to store a secret.
const SHOWN_ONCE: &str = "the secret is shown only this once: store it now";

/// Adds to an error about a missing integration the command that lists those of `form`.
fn with_list_hint(session: &Session, error: ClientError, form: &str) -> CliError {
    if error.problem().is_some_and(|problem| problem.code == Code::IntegrationNotFound) {
        let help = format!("{} integrations list {form} shows them", session.command_prefix());
        return CliError::client_with_help(error, help);
    }
    error.into()
}

/// Returns name, type and target of an integration as text.
fn name(integration: &ReceivedBody<IntegrationDetail>) -> Result<String, CliError> {
    let described = describe(&value_of(integration)?);
    Ok(format!("`{}` ({described})", integration.name))
}
