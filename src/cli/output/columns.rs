//! `--columns`: what each command has to choose from, and what is said of a column that there is not.
//!
//! Names are checked before a command begins: whoever misspells one has not yet made a form.

use crate::cli::output::exit::CliError;
use crate::cli::output::table::shown;
use crate::cli::output::{Format, Output, wrapped};
use crate::domain::validation::similar::similar;

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
pub const FORM: Columns = Columns::Of(&[
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

/// Makes of the columns that were asked for those that the command has. CSV has all of them unless some were chosen, so
/// that its columns do not depend on what it shows.
///
/// # Errors
/// Of a column that the command does not have, and of any where the format has none.
pub fn resolve(columns: Columns, output: &mut Output) -> Result<(), CliError> {
    if output.columns.is_empty() {
        if let (Format::Csv, Columns::Of(known)) = (output.format, columns) {
            output.columns = known.iter().map(|name| (*name).to_owned()).collect();
        }
        return Ok(());
    }
    match (output.format, columns) {
        (Format::Json | Format::Jsonl | Format::Yaml, _) => {
            let help = "leave it out: programs pick members themselves, as in jq '{id, title}'";
            Err(CliError::usage_with_help("--columns is for tables and CSV", help))
        }
        (_, Columns::None) => Err(CliError::usage("--columns: this command shows nothing in columns")),
        (_, Columns::Of(known)) => {
            output.columns = find(&output.columns, known)?;
            Ok(())
        }
        (_, Columns::OfList) => Ok(()),
    }
}

/// Returns the names of the `wanted` columns among those `known`. A heading will do, `RESPONSES`, and any case.
///
/// # Errors
/// Of the first that is not known.
pub fn find(wanted: &[String], known: &[impl AsRef<str>]) -> Result<Vec<String>, CliError> {
    let known = || known.iter().map(AsRef::as_ref);
    let is_meant = |wanted: &str, known: &&str| {
        known.eq_ignore_ascii_case(wanted) || shown(known).eq_ignore_ascii_case(wanted)
    };
    let name = |wanted: &str| {
        let exact = known().find(|known| *known == wanted);
        exact.or_else(|| known().find(|known| is_meant(wanted, known))).map(str::to_owned)
    };
    let Some(unknown) = wanted.iter().find(|wanted| name(wanted).is_none()) else {
        return Ok(wanted.iter().filter_map(|wanted| name(wanted)).collect());
    };
    let near =
        similar(unknown, known()).map(|name| format!("a column with a similar name exists: `{name}`;\n"));
    let all = wrapped(&format!("columns are {}", known().collect::<Vec<_>>().join(", ")), 68);
    let help = near.unwrap_or_default() + &all;
    Err(CliError::usage_with_help(format!("there is no column `{unknown}`"), help))
}
