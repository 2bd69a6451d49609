//! `forms workspaces`.

use clap::Args;
use serde_json::json;

use crate::api::{NewWorkspace, WorkspaceDetail};
use crate::cli::commands::batch::for_each;
use crate::cli::commands::keys::{SHOWN_ONCE, revealed};
use crate::cli::commands::{CliError, Columns, Run, Session, subcommands};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::columns::DELETED;
use crate::cli::output::listing::{self, Listing};
use crate::cli::output::table::Cell;
use crate::client::ReceivedBody;

subcommands! {
    /// List, create and delete the workspaces of a server
    #[command(after_long_help = "\
A workspace has forms and keys of its own, which other workspaces cannot see.
These commands need a key with the scope operator.

Examples:
  forms workspaces list
  forms workspaces create \"Customer service\"
  forms workspaces delete ws_7k2m9q4x1abz")]
    pub enum Workspaces {
        List(List),
        Create(Create),
        Delete(Delete),
    }
}

/// List workspaces
#[derive(Debug, Args)]
#[command(after_long_help = "\
Newest first. The columns are id, name and created_at.

Examples:
  forms workspaces list
  forms workspaces list -o json | jq -r '.workspaces[].name'")]
pub struct List {}

/// Create a workspace with its first key
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only the key, which has the scope admin and is not shown again.

Examples:
  (umask 077; forms workspaces create \"Customer service\" > service.key)")]
pub struct Create {
    /// Name of the workspace
    name: String,
}

/// Delete workspaces with their keys, forms and answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Erases everything in the workspace; nothing can be restored. Asks for the name
of the workspace; without a terminal, --yes is required. Prints the id of each
workspace.

Examples:
  forms workspaces delete ws_7k2m9q4x1abz
  forms workspaces delete --yes ws_7k2m9q4x1abz")]
pub struct Delete {
    /// Workspaces, by id: `forms workspaces list` shows it
    #[arg(required = true, value_name = "ID")]
    workspaces: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Run for List {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let workspaces = session.client().await?.list(&["workspaces"], "workspaces").await?;
        let now = session.now();
        let columns: Vec<Column<'_>> = vec![
            Column::new("id", |workspace| Cell::text(workspace.id.to_string())),
            Column::new("name", |workspace| Cell::text(&*workspace.name)),
            Column::new("created_at", |workspace| Cell::time(workspace.created_at, now)),
        ];
        Listing::new(&session.output, "workspaces", "no workspaces", columns).show_items(workspaces)
    }
}

type Column<'a> = listing::Column<'a, ReceivedBody<WorkspaceDetail>>;

impl Run for Create {
    const COLUMNS: Columns = Columns::Fixed(&["id", "name", "created_at", "key"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let request = NewWorkspace { name: self.name };
        let created = session.client().await?.post::<WorkspaceDetail>(&["workspaces"], &request).await?;
        let (prefix, id) = (session.command_prefix(), created.id);
        let create = "keys create --name admin --scope admin --workspace";
        let help = format!("create another key: {prefix} {create} {id}");
        let text = revealed(created.key.as_ref(), &id.to_string(), help)?;
        session.output.object(&created, || format!("{text}\n"))?;
        session.output.success(&format!("created {id} \"{}\"", created.name));
        session.output.status(SHOWN_ONCE);
        Ok(())
    }
}

impl Run for Delete {
    const COLUMNS: Columns = DELETED;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        for_each(session, &self.workspaces, async |id| delete(session, id, self.yes).await).await
    }
}

async fn delete(session: &Session, id: &str, yes: bool) -> Result<(), CliError> {
    let client = session.client().await?;
    let workspaces =
        if yes { Vec::new() } else { client.list::<WorkspaceDetail>(&["workspaces"], "workspaces").await? };
    // The server reports a workspace that does not exist.
    if let Some(workspace) = workspaces.iter().find(|workspace| workspace.id.to_string() == id) {
        let name = &workspace.name;
        let what = format!("erase the workspace \"{name}\" with its keys, forms and answers");
        session.confirm(&what, ConfirmBy::Typed(name.clone())).await?;
    }
    session.client().await?.delete(&["workspaces", id], false).await?;
    session.output.object(&json!({"id": id, "deleted": true}), || format!("{id}\n"))?;
    session.output.success("Erased");
    Ok(())
}
