//! Secrets in files of their own.

use std::io::{self, Read};
use std::path::Path;

use crate::cli::input::document;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;

/// Maximum size, in bytes.
const MAX_FILE: u64 = 8 << 10;

/// Returns the name of the file at `path` for messages.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Reads the file at `path`, `-` for standard input, without white space at its ends.
///
/// # Errors
/// If it cannot be read, is too large, or is empty.
pub fn read(path: &Path) -> Result<String, CliError> {
    let text = read_text(path)?;
    if text.is_empty() { Err(CliError::usage(format!("{} has no secret", name(path)))) } else { Ok(text) }
}

/// Reads the file as [`read`] does; it may be empty.
///
/// # Errors
/// If it cannot be read, or is too large.
pub fn read_text(path: &Path) -> Result<String, CliError> {
    let name = name(path);
    let read = document::open(path).and_then(|file| io::read_to_string(file.take(MAX_FILE + 1)));
    let text = read.map_err(|error| CliError::usage(format!("cannot read {name}: {}", reason(&error))))?;
    match text.trim() {
        _ if text.len() as u64 > MAX_FILE => {
            Err(CliError::usage(format!("{name} is larger than {} KiB", MAX_FILE >> 10)))
        }
        secret => Ok(secret.to_owned()),
    }
}
