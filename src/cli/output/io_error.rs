//! I/O errors in plain words.

use std::io;

use crate::cli::output::text::lower_first;

/// Returns the reason without the file's name, which the message has already.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "part of the path is not a directory".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => lower_first(&without_number(&error.to_string())),
    }
}

/// Removes the operating system's `(os error 2)`.
pub fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|character: char| character.is_ascii_digit());
            format!("{before}{}", after.trim_start_matches(')'))
        }
        None => text.to_owned(),
    }
}
