//! `forms keys`: commands on API keys, one file each.

mod create;
mod list;
mod revoke;
mod stored_keys;

use crate::cli::commands::{CliError, Columns, Session, subcommands};
use crate::domain::open_enum::OpenEnum;
use crate::domain::workspace::Scope;
use crate::secret::Secret;

pub(super) use create::replace_all_operator_keys;

use create::Create;
use list::List;
use revoke::{Revoke, Rotate};

subcommands! {
    /// List, create, revoke and rotate API keys
    #[command(after_long_help = "\
A key belongs to a workspace, and its scopes say what it may do:

  read      read forms and submissions
  submit    create submissions, and read the form for that
  write     create and change forms and submissions; includes read and submit
  admin     manage keys, and erase; includes write
  operator  manage the workspaces of the server

Examples:
  forms keys list
  forms keys create --name website --scope submit --form customer-feedback
  forms keys revoke key_1a2b3c4d")]
    pub enum Keys {
        List(List),
        Create(Create),
        Revoke(Revoke),
        Rotate(Rotate),
    }
}

/// Columns of a key that was created.
const CREATED: Columns =
    Columns::Fixed(&["id", "name", "scopes", "forms", "expires_at", "workspace", "created_at", "key"]);

/// Reminds the user to store a key or secret.
pub(super) const SHOWN_ONCE: &str = "shown only this once: store it now";

/// Returns the text of a key or secret that was made for `owner`. After a lost response the server answers again, without it.
pub(super) fn revealed<'a>(
    text: Option<&'a Secret<String>>,
    owner: &str,
    help: String,
) -> Result<&'a str, CliError> {
    let lost = || CliError::Failed {
        message: format!("{owner} was created, but its text was lost with the first response"),
        causes: vec![help],
    };
    text.map(|text| text.reveal().as_str()).ok_or_else(lost)
}

/// Returns scopes as text.
pub fn scope_names(scopes: &[OpenEnum<Scope>]) -> String {
    scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
