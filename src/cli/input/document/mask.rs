//! Secrets in the text of a form file, which excerpts must not show.

use crate::cli::input::document::spans::{Documents, Span};
use crate::cli::input::secret_members::{is_secret, names};

/// Members whose own members are ids of questions.
const OF_QUESTIONS: [&str; 5] = ["questions", "when", "show_if", "required_if", "tests"];

/// Members of a secret that can be shown.
const SHOWN: [&str; 2] = ["env", "set"];

/// Whether the value of the last of the nested members `names` is the text of a secret, in an integration or where one was
/// meant to be.
pub(super) fn is_masked<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let names: Vec<_> = names.collect();
    let is_of_question = names.iter().any(|name| OF_QUESTIONS.contains(name));
    let is_shown = names.len() > 1 && names.last().is_some_and(|last| SHOWN.contains(last));
    !is_of_question && !is_shown && (0..names.len()).any(|start| is_secret_text(&names[start..]))
}

/// Whether the path `names` is that of a secret in some type of integration.
fn is_secret_text(path: &[&str]) -> bool {
    let is_member = matches!(path, [first, second, ..] if *first == "integrations" && names().any(|name| name == *second));
    is_member || is_secret(None, path)
}

/// Returns the spans of all secrets in `source`, in order. After a syntax error, lines are searched for their names.
pub(super) fn find_secrets(source: &str, walked: &Documents) -> Vec<Span> {
    // The span of a block of text reaches up to the next key.
    let trimmed = |span: &Span| {
        let text = source.get(span.clone()).unwrap_or_default().trim_end();
        span.start + host_end(text)..span.start + text.len()
    };
    let mut secrets: Vec<_> = walked.secrets.iter().map(trimmed).collect();
    let start = source.get(..walked.end).and_then(|text| text.rfind('\n')).map_or(0, |newline| newline + 1);
    let mut at = start;
    for line in source.get(start..).unwrap_or_default().split_inclusive('\n') {
        let text = line.trim_end();
        secrets.extend(value_after_name(text).map(|value| at + value..at + text.len()));
        at += line.len();
    }
    secrets.sort_by_key(|span| span.start);
    secrets.dedup_by(|next, span| {
        let overlaps = next.start < span.end;
        if overlaps {
            span.end = span.end.max(next.end);
        }
        overlaps
    });
    secrets.retain(|span| !span.is_empty());
    secrets
}

/// Returns where the value of a secret begins in `line`.
fn value_after_name(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    let value = |name: &str| {
        let after = lower.find(name)? + name.len();
        let rest = line[after..].trim_start_matches(['"', '\'', ' ']).strip_prefix(':')?.trim_start();
        (!rest.is_empty()).then(|| line.len() - rest.len() + host_end(rest))
    };
    names().filter_map(value).min()
}

/// Returns the end of the host, if `text` is a URL, in quotes or not: what follows may be secret.
fn host_end(text: &str) -> usize {
    let scheme =
        text.find("://").filter(|at| matches!(text[..*at].trim_start_matches(['"', '\'']), "http" | "https"));
    let Some(host) = scheme.map(|at| at + "://".len()) else { return 0 };
    text[host..].find(['/', '?', '#']).map_or(text.len(), |end| host + end)
}
