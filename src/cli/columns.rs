//! `--columns`: what each command has to choose from, and what is said of a column that there is not.
//!
//! Names are checked before a command begins: whoever misspells one has not yet made a form.

use crate::cli::args::Command;
use crate::cli::exit::CliError;
use crate::cli::output::{Format, Output, wrapped};
use crate::domain::similar::similar;

/// What a command has to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// It shows nothing that has columns.
    None,
    /// These.
    Of(&'static [&'static str]),
    /// Those of a list, which knows them itself.
    OfList,
}

/// What is shown of a form.
const FORM: Columns = Columns::Of(&[
    "id",
    "title",
    "description",
    "slug",
    "status",
    "version",
    "accepting",
    "accepting_reason",
    "questions",
    "settings",
    "response_count",
    "created_at",
    "updated_at",
    "published_at",
]);

/// What is shown of a submission.
pub const SUBMISSION: Columns = Columns::Of(OF_SUBMISSION);

/// The members of a submission.
pub const OF_SUBMISSION: &[&str] = &[
    "id",
    "form_id",
    "status",
    "answers",
    "submitted_at",
    "form_version",
    "metadata",
    "updated_at",
    "deleted_at",
];

/// What is shown of something that was deleted.
pub const DELETED: Columns = Columns::Of(&["id", "deleted"]);

/// What `command` has to choose from.
fn of(command: &Command) -> Columns {
    match command {
        Command::Create(_)
        | Command::Edit(_)
        | Command::Publish(_)
        | Command::Unpublish(_)
        | Command::Close(_)
        | Command::Show(_)
        | Command::Restore(_) => FORM,
        Command::Delete(_) => DELETED,
        Command::List(_) => Columns::OfList,
        Command::Submit(_) => SUBMISSION,
        Command::Responses(responses) => responses.columns(),
        Command::Validate(validate) => validate.columns(),
        Command::Whoami(_) => Columns::Of(&["url", "data", "key", "workspace"]),
        Command::Explain(_) => Columns::Of(&["code", "status", "meaning"]),
        Command::Serve(_) | Command::Completions(_) | Command::Help(_) => Columns::None,
    }
}

/// Refuses columns that `command` does not have, and any where the format has none.
pub fn expect(command: &Command, output: &Output) -> Result<(), CliError> {
    if output.columns.is_empty() {
        return Ok(());
    }
    match (output.format, of(command)) {
        (Format::Json | Format::Jsonl | Format::Yaml, _) => {
            let help = "leave it out: programs pick members themselves, as in jq '{id, title}'";
            Err(CliError::usage_with_help("--columns is for tables and CSV", help))
        }
        (_, Columns::None) => Err(CliError::usage("--columns: this command shows nothing in columns")),
        (_, Columns::Of(known)) => find(&output.columns, known),
        (_, Columns::OfList) => Ok(()),
    }
}

/// Refuses the first of `wanted` that is not `known`.
pub fn find(wanted: &[String], known: &[impl AsRef<str>]) -> Result<(), CliError> {
    let known = || known.iter().map(AsRef::as_ref);
    let Some(unknown) = wanted.iter().find(|name| !known().any(|known| known == name.as_str())) else {
        return Ok(());
    };
    let near =
        similar(unknown, known()).map(|name| format!("a column with a similar name exists: `{name}`;\n"));
    let all = wrapped(&format!("columns are {}", known().collect::<Vec<_>>().join(", ")), 68);
    let help = near.unwrap_or_default() + &all;
    Err(CliError::usage_with_help(format!("there is no column `{unknown}`"), help))
}
