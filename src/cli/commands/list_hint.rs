//! Help for ids that do not exist: the command that lists those that do.

use crate::cli::connection::session::Session;
use crate::cli::output::exit::CliError;
use crate::client::ClientError;

/// Adds the command that lists all `items`, such as `keys`, to the error that there is none with the id.
pub(super) fn with_list_hint(session: &Session, error: ClientError, items: &str) -> CliError {
    match error.status() {
        Some(404) => {
            let help = format!("{} {items} list shows the {items}", session.command_prefix());
            CliError::client_with_help(error, help)
        }
        _ => error.into(),
    }
}
