//! `forms keys list`.

use clap::Args;

use crate::api::KeyDetail;
use crate::cli::commands::Run;
use crate::cli::commands::keys::scope_names;
use crate::cli::connection::session::Session;
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::listing::{ListLimit, Listing};
use crate::cli::output::table::Cell;
use crate::client::ReceivedBody;
use crate::clock::Timestamp;
use crate::domain::json::Value;

/// List API keys
#[derive(Debug, Args)]
#[command(after_long_help = "\
The keys of the workspace, newest first, also those that have expired. The
columns are id, name, scopes, last_used_at and expires_at; --columns can choose
forms, workspace and created_at too.

Examples:
  forms keys list
  forms keys list --columns id,name,forms
  forms keys list -o jsonl | jq -r 'select(.last_used_at == null) | .id'")]
pub(super) struct List {}

/// All columns, by their API names.
const COLUMNS: [&str; 8] =
    ["id", "name", "scopes", "last_used_at", "expires_at", "forms", "workspace", "created_at"];

/// Number of columns shown unless others are chosen.
const DEFAULT_COLUMNS: usize = 5;

impl Run for List {
    fn columns(&self) -> Columns {
        Columns::Dynamic
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let keys = session.client().await?.list_keys().await?;
        let output = &*session.output;
        let (count, now) =
            (if output.columns.is_empty() { DEFAULT_COLUMNS } else { COLUMNS.len() }, session.now());
        let row = |key: &ReceivedBody<KeyDetail>| cells(key, now).into_iter().take(count).collect();
        let body = |keys| Value::Object(vec![("keys".to_owned(), Value::Array(keys))]);
        let listing = Listing {
            output,
            list_limit: ListLimit::ALL,
            raw: false,
            headers: COLUMNS.iter().take(count).map(ToString::to_string).collect(),
            optional: "expires_at",
            none: format!("no keys: {} keys create", session.command_prefix()),
            row: &row,
            body: &body,
        };
        listing.show_items(&keys)
    }
}

fn cells(key: &KeyDetail, now: Timestamp) -> [Cell; COLUMNS.len()] {
    let unset = || Cell::text("");
    let forms = key.forms.iter().flatten().map(ToString::to_string).collect::<Vec<_>>();
    [
        Cell::text(key.id.to_string()),
        Cell::text(&*key.name),
        Cell::text(scope_names(&key.scopes)),
        key.last_used_at.map_or_else(|| unset().with_display("never"), |used| Cell::time(used, now)),
        key.expires_at.map_or_else(unset, |end| expiry(end, now)),
        Cell::text(forms.join(", ")),
        Cell::text(key.workspace.to_string()),
        Cell::time(key.created_at, now),
    ]
}

/// Returns the cell of an expiry: its day, in red once it has passed.
fn expiry(end: Timestamp, now: Timestamp) -> Cell {
    let day: String = end.to_string().chars().take(10).collect();
    match end <= now {
        true => Cell::number(end).with_display(format!("expired {day}")).with_colour(31),
        false => Cell::number(end).with_display(day),
    }
}
