//! Secrets in the text of a form file: excerpts do not show the lines that have one.

use crate::cli::input::document::tree::{Parsed, Span};
use crate::domain::integration::secret_members::is_secret_name;

/// Members whose own members are ids of questions.
const OF_QUESTIONS: [&str; 5] = ["questions", "when", "show_if", "required_if", "tests"];

/// Members of a secret that can be shown.
const SHOWN: [&str; 2] = ["env", "set"];

/// Whether the value of the last of the nested members `names` is the text of a secret, in an integration or where one was
/// meant to be.
pub(super) fn is_masked<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let names: Vec<_> = names.collect();
    let is_shown = names.len() > 1 && names.last().is_some_and(|last| SHOWN.contains(last));
    if is_shown || names.iter().any(|name| OF_QUESTIONS.contains(name)) {
        return false;
    }
    let is_header_value = names.contains(&"headers") && names.last() == Some(&"value");
    is_header_value || names.iter().any(|name| is_secret_name(name))
}

/// Returns the spans of all secrets in `source`. After a syntax error, those are the lines with the name of one.
pub(super) fn find_secrets(source: &str, parsed: &Parsed) -> Vec<Span> {
    // The span of a block of text reaches up to the next key.
    let trimmed = |span: &Span| span.start..span.start + source[span.clone()].trim_end().len();
    let mut secrets: Vec<_> = parsed.secrets.iter().map(trimmed).collect();
    let mut at = source[..parsed.end].rfind('\n').map_or(0, |newline| newline + 1);
    for line in source[at..].split_inclusive('\n') {
        let key = |before: &str| {
            let before = before.trim_end_matches(['"', '\'', ' ']);
            before.rsplit(|end: char| !end.is_alphanumeric() && !"_-".contains(end)).next().map(str::to_owned)
        };
        let mut keys = line.split(':').rev().skip(1).filter_map(key);
        if keys.any(|key| is_secret_name(&key)) {
            secrets.push(at..at + line.trim_end().len());
        }
        at += line.len();
    }
    secrets
}
