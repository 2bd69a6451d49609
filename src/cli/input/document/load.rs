//! Loads a file from its path or from standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;

/// Returns the name and text of the file at `path`, `-` for standard input, of at most `max` bytes.
pub(super) fn load(path: &Path, max: u64) -> Result<(String, String), CliError> {
    let file = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    open(path)
        .and_then(|opened| opened.take(max + 1).read_to_end(&mut bytes))
        .map_err(|error| CliError::usage(format!("cannot read {file}: {}", reason(&error))))?;
    if bytes.len() as u64 > max {
        let message = format!("{file} is larger than {} MiB", max >> 20);
        let diagnostic = Diagnostic::new("file_too_large", message);
        return Err(Report::of_file(&file, vec![diagnostic]).into());
    }
    let text = decode(&file, bytes)?;
    Ok((file, text))
}

/// Opens the file at `path`, `-` for standard input.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") { Ok(Box::new(io::stdin().lock())) } else { Ok(Box::new(File::open(path)?)) }
}

/// Decodes `bytes`, the content of `file`, as UTF-8.
pub fn decode(file: &str, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let message = format!("{file} is not valid UTF-8 after byte {}", error.utf8_error().valid_up_to());
        Report::of_file(file, vec![Diagnostic::new("malformed_file", message)]).into()
    })
}
