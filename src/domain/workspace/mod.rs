//! Workspaces, their API keys, and the scopes of a key.

mod api_key;
mod key_request;
mod scope;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::form::admission::Refusal;
use crate::domain::json::Value;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, collect_violations};
use crate::id::WorkspaceId;

pub use api_key::{ApiKey, Caller, Rotation};
pub use key_request::{KeyReferences, named_forms, named_workspace, needed_scopes, read_grace};
pub use scope::Scope;

/// Maximum characters in the name of a workspace or a key.
const MAX_NAME: usize = 300;

/// Maximum keys of a workspace, expired ones included.
pub const MAX_KEYS: usize = 1_000;

/// Maximum workspaces of a server.
pub const MAX_WORKSPACES: usize = 1_000;

/// Owner of forms and keys. The unit of tenancy: nothing in one workspace is visible from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub name: String,
    pub created_at: Timestamp,
}

impl Workspace {
    /// Parses the body of a create request, which has only a name; the error lists all violations.
    pub fn read_name(body: &Value) -> Result<String, Vec<Violation>> {
        collect_violations(|violations| {
            let mut fields = Fields::open(body, "", "the workspace", violations)?;
            let name = fields.required_text("name", MAX_NAME);
            fields.close(&["id", "created_at", "key"]);
            name
        })
    }

    /// Checks whether a server that has `count` workspaces may get another one.
    pub fn check_count(count: usize) -> Result<(), Refusal> {
        let help = "delete workspaces that are not needed any more";
        check_count(count, MAX_WORKSPACES, "the server has", "workspaces", help)
    }

    /// Checks whether a workspace that has `count` keys may get another one.
    pub fn check_key_count(count: usize) -> Result<(), Refusal> {
        check_count(count, MAX_KEYS, "the workspace has", "keys", "revoke keys that are not used any more")
    }

    /// Checks whether a request from the workspace `own` may delete this one. It must be another one, and still exist: so
    /// one workspace always remains.
    pub fn check_deletion(&self, own: Option<&Self>) -> Result<(), Refusal> {
        let is_other = own.is_some_and(|own| own.id != self.id);
        if is_other { Ok(()) } else { Err(Refusal::WorkspaceInUse) }
    }
}

fn check_count(count: usize, max: usize, owner: &str, what: &str, help: &str) -> Result<(), Refusal> {
    if count < max {
        return Ok(());
    }
    let message = format!("{owner} {count} {what}, {max} are allowed");
    Err(Refusal::InvalidBody(vec![Violation::new("", Rule::TooMany, message).help(help)]))
}
