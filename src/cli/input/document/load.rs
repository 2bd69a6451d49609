//! Gets a file's text, from its path or from standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::cli::output::diagnostics::{Finding, Report};
use crate::cli::output::exit::CliError;

/// The name of the file at `path`, `-` being standard input, and its text of `max` bytes at most.
pub(super) fn load(path: &Path, max: u64) -> Result<(String, String), CliError> {
    let file = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let got = if path == Path::new("-") {
        io::stdin().lock().take(max + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|opened| opened.take(max + 1).read_to_end(&mut bytes))
    };
    got.map_err(|error| CliError::usage(format!("cannot read {file}: {}", reason(&error))))?;
    if bytes.len() as u64 > max {
        let message = format!("{file} has more than {} MiB", max >> 20);
        let finding = Finding::new("file_too_large", message);
        return Err(Report::of_file(&file, vec![finding]).into());
    }
    let text = decode(&file, bytes)?;
    Ok((file, text))
}

/// The text in `bytes`, the content of `file`.
///
/// # Errors
/// If they are not UTF-8.
pub fn decode(file: &str, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let message = format!("{file} is not UTF-8 after byte {}", error.utf8_error().valid_up_to());
        Report::of_file(file, vec![Finding::new("malformed_file", message)]).into()
    })
}

/// The reason alone why a file cannot be read: its name stands beside it already.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is not a directory".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => {
            let text = without_number(&error.to_string());
            let mut characters = text.chars();
            let first = characters.next().into_iter().flat_map(char::to_lowercase);
            first.chain(characters).collect()
        }
    }
}

/// `text` without the operating system's `(os error 2)`.
pub fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, after)) => format!(
            "{before}{}",
            after.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(')')
        ),
        None => text.to_owned(),
    }
}
