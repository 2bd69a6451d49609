//! `forms keys list`.

use clap::Args;

use crate::api::KeyDetail;
use crate::cli::commands::keys::scope_names;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::table::{Cell, Color};
use crate::client::ReceivedBody;
use crate::clock::Timestamp;

/// List API keys
#[derive(Debug, Args)]
#[command(after_long_help = "\
The keys of the workspace, newest first, also those that have expired. The
columns are id, name, scopes, last_used_at and expires_at, on a terminal also
the forms that a key is limited to; --columns can choose forms, workspace and
created_at too.

Examples:
  forms keys list
  forms keys list --columns id,name,forms
  forms keys list -o jsonl | jq -r 'select(.last_used_at == null) | .id'")]
pub struct List {}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let keys = session.client().await?.list(&["keys"], "keys").await?;
        let none = format!("no keys: {} keys create", session.command_prefix());
        Listing::new(&session.output, "keys", none, columns(session.now())).show_items(keys)
    }
}

type Column<'a> = listing::Column<'a, ReceivedBody<KeyDetail>>;

fn columns<'a>(now: Timestamp) -> Vec<Column<'a>> {
    let forms = |key: &KeyDetail| key.forms.iter().flatten().map(ToString::to_string).collect::<Vec<_>>();
    vec![
        Column::new("id", |key| Cell::text(key.id.to_string())),
        Column::new("name", |key| Cell::text(&*key.name)),
        Column::new("scopes", |key| Cell::text(scope_names(&key.scopes))),
        Column::new("last_used_at", move |key| match key.last_used_at {
            Some(used) => Cell::time(used, now),
            None => Cell::text("").with_display("never"),
        }),
        Column::new("expires_at", move |key| key.expires_at.map_or_else(Cell::empty, |end| expiry(end, now))),
        Column::new("forms", move |key| Cell::text(forms(key).join(", "))).outside_pipes(),
        Column::new("workspace", |key| Cell::text(key.workspace.to_string())).if_chosen(),
        Column::new("created_at", move |key| Cell::time(key.created_at, now)).if_chosen(),
    ]
}

/// Returns the cell of an expiry: its day, in red once it has passed.
fn expiry(end: Timestamp, now: Timestamp) -> Cell {
    let day: String = end.to_string().chars().take(10).collect();
    match end <= now {
        true => Cell::number(end).with_display(format!("expired {day}")).with_colour(Color::DarkRed),
        false => Cell::number(end).with_display(day),
    }
}
