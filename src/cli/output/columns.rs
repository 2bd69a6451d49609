//! `--columns`: the columns of each command, and errors about unknown ones.
//!
//! Names are checked before a command runs, so that a misspelt one has no effect.

use crate::cli::output::exit::CliError;
use crate::cli::output::table::header_text;
use crate::cli::output::{Format, Output, wrap};
use crate::domain::validation::similar::similar;

/// The columns of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The command prints no columns.
    None,
    /// These columns.
    Fixed(&'static [&'static str]),
    /// Columns available only when the list is built.
    Dynamic,
}

/// Columns of a form.
pub const FORM: Columns = Columns::Fixed(&[
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

/// Columns of a submission.
pub const SUBMISSION: Columns = Columns::Fixed(SUBMISSION_FIELDS);

/// The members of a submission.
pub const SUBMISSION_FIELDS: &[&str] = &[
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

/// Columns of a deletion.
pub const DELETED: Columns = Columns::Fixed(&["id", "deleted"]);

/// Resolves the chosen columns to those that the command has. CSV gets all of them by default, so that its columns do not
/// depend on the data.
///
/// # Errors
/// If the command has no such column, or the format has no columns.
pub fn resolve(columns: Columns, output: &mut Output) -> Result<(), CliError> {
    if output.columns.is_empty() {
        if let (Format::Csv, Columns::Fixed(names)) = (output.format, columns) {
            output.columns = names.iter().map(|name| (*name).to_owned()).collect();
        }
        return Ok(());
    }
    match (output.format, columns) {
        (Format::Json | Format::Jsonl | Format::Yaml, _) => {
            let help = "select members with a program, such as jq '{id, title}'";
            Err(CliError::usage_with_help("--columns can only be used with tables, CSV and XLSX", help))
        }
        (_, Columns::None) => Err(CliError::usage("--columns cannot be used with this command")),
        (_, Columns::Fixed(names)) => {
            output.columns = resolve_names(&output.columns, names)?;
            Ok(())
        }
        (_, Columns::Dynamic) => Ok(()),
    }
}

/// Resolves each of `selected` to one of `available`. Headings such as `RESPONSES` are accepted, ignoring case.
///
/// # Errors
/// If a name is unknown, with the first such name.
pub fn resolve_names(selected: &[String], available: &[impl AsRef<str>]) -> Result<Vec<String>, CliError> {
    let available: Vec<&str> = available.iter().map(AsRef::as_ref).collect();
    let resolve = |selected: &String| {
        let is_heading = |name: &&&str| {
            name.eq_ignore_ascii_case(selected) || header_text(name).eq_ignore_ascii_case(selected)
        };
        let exact = available.iter().find(|name| *name == selected);
        let name = exact.or_else(|| available.iter().find(is_heading)).map(|name| (*name).to_owned());
        name.ok_or_else(|| unknown_column(selected, &available))
    };
    selected.iter().map(resolve).collect()
}

fn unknown_column(name: &str, available: &[&str]) -> CliError {
    let near = similar(name, available.iter().copied())
        .map(|name| format!("a column with a similar name exists: `{name}`;\n"));
    let all = wrap(&format!("columns are {}", available.join(", ")), 68);
    CliError::usage_with_help(format!("there is no column `{name}`"), near.unwrap_or_default() + &all)
}
