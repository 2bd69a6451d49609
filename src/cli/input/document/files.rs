//! The form files that a command line names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;

/// Names of form files end in one of these.
pub(super) const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Returns the files at `paths`, `-` for standard input; of a folder, all form files in it and below, by name. Hidden files and
/// folders, those with tests, and repetitions are left out.
///
/// # Errors
/// If a folder cannot be read, or has no form file.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        let mut found = Vec::new();
        if path.is_dir() {
            walk(path, &mut found)?
        } else {
            found.push(path.clone())
        }
        if found.is_empty() {
            let message = format!("{} has no form file", path.display());
            return Err(CliError::usage_with_help(message, "forms are in *.yaml, *.yml and *.json"));
        }
        found.retain(|file| !files.contains(file));
        files.append(&mut found);
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let unreadable = |error| CliError::usage(format!("cannot read {}: {}", folder.display(), reason(&error)));
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(unreadable)?.collect();
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        // A link to a folder could lead back to it.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match (name.starts_with('.'), is_folder) {
            (true, _) => {}
            (false, true) => walk(&path, files)?,
            (false, false) if is_form_file(&name) && path.is_file() => files.push(path),
            (false, false) => {}
        }
    }
    Ok(())
}

fn is_form_file(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or_default();
    EXTENSIONS.contains(&extension) && !stem.ends_with(".test")
}
