//! Commands on forms, one file for each idea.

mod create;
mod diff;
mod edit;
mod edit_loop;
mod list;
mod outline;
mod patch;
mod questions;
mod set;
mod show;
mod state;
mod trash;
mod wizard;

use crate::api::Problem;
use crate::cli::diagnostics::{Finding, Report};
use crate::cli::exit::CliError;
use crate::cli::session::Session;
use crate::cli::several::Several;
use crate::cli::violations::tell_violations;
use crate::domain::json::Value;
use crate::domain::violation::Violation;

pub use create::Create;
pub use edit::Edit;
pub use list::List;
pub use show::Show;
pub use state::{Close, Publish, Unpublish, name, or_opened, shut};
pub use trash::{Delete, Restore};

/// Does the same to each form; one that fails does not keep the others.
async fn each(
    session: &Session,
    forms: &[String],
    act: impl AsyncFn(&str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut several = Several::begin(session, forms.len());
    for form in forms {
        let ended = match act(form).await {
            // One alone fails as the command does, which suggests for itself.
            Err(error) if forms.len() > 1 => Err(session.suggest(error).await),
            ended => ended,
        };
        several.note(form, ended)?;
    }
    several.end()
}

/// All that is wrong with `form`, which stands in no file.
fn rejected(form: &Value, violations: &[Violation], problem: Problem) -> CliError {
    not_stored(tell_violations(form, violations), problem)
}

fn not_stored(findings: Vec<Finding>, problem: Problem) -> CliError {
    Report::with_outcome(findings, "nothing was stored", problem).into()
}
