//! Error messages of the command line, with help.
#![deny(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use serde_json::Value;

use crate::api::{Code, Problem};
use crate::cli::output::diagnostics::{Diagnostic, to_json};
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::cli::output::visible;
use crate::client::ClientError;

/// Codes that only the command line has, as in `-o json`, with their meanings.
pub const CODES: [(&str, &str); 11] = [
    ("usage", "The command line is not valid. `forms help <command>` shows the usage."),
    (
        "store_in_use",
        "Only one process can use a data directory at a time. Leave out --data if a server uses it, or wait for the other process.",
    ),
    (
        "address_in_use",
        "Another program listens at the address. Choose another one with --listen, or port 0 for any free port.",
    ),
    ("io", "Reading or writing failed on this machine. The message has the reason of the operating system."),
    (
        "failed",
        "This machine cannot do it, for the reason in the message, or this is a bug: please report it.",
    ),
    ("partial", "Some of several items failed. Each has its own problem in `failures`; the others are done."),
    ("declined", "You answered no. Nothing was done."),
    ("closed_pipe", "The reader closed the output, as `head` does. This is not a failure."),
    ("interrupted", "Ctrl-C was pressed. What was sent before may have been carried out."),
    (
        "unreachable",
        "No server responds at the address. `forms whoami` shows where the address came from; `forms serve --data DIR` starts a server.",
    ),
    (
        "unexpected_answer",
        "The server at the address is not a forms server, or is of another version. `forms whoami` shows where the address came from.",
    ),
];

/// Converts an error to a diagnostic.
pub fn to_diagnostic(error: &CliError) -> Diagnostic {
    match error {
        CliError::Usage { message, help } => local_diagnostic("usage", message).help(help.clone()),
        CliError::Rejected(report) => {
            local_diagnostic("validation_failed", report.summary.as_deref().unwrap_or("not accepted"))
        }
        CliError::Client { error, notes, help } => {
            let mut diagnostic = client_diagnostic(error);
            diagnostic.notes.extend(notes.iter().cloned());
            diagnostic.help = help.clone().or(diagnostic.help);
            diagnostic
        }
        CliError::InUse { data, holder, help } => {
            let by = match holder {
                Some((pid, Some(url))) => format!("a running server (pid {pid}, {url})"),
                Some((pid, None)) => format!("another process (pid {pid})"),
                None => "another process".to_owned(),
            };
            local_diagnostic("store_in_use", &format!("{} is in use by {by}", data.display()))
                .help(Some((*help).to_owned()))
        }
        CliError::AddressInUse { address, holder } => {
            let by = holder.as_ref().map_or_else(
                || "another program".to_owned(),
                |(pid, data)| format!("a forms server of yours (pid {pid}, {})", data.display()),
            );
            local_diagnostic("address_in_use", &format!("{address} is in use by {by}"))
                .help(Some("choose another with --listen, or 127.0.0.1:0 for any free one".to_owned()))
        }
        CliError::Io { what, source } => local_diagnostic("io", &format!("{what}: {}", reason(source))),
        CliError::Failed { what, causes } => {
            Diagnostic { notes: causes.clone(), ..local_diagnostic("failed", what) }
        }
        CliError::Partial { failed, of, .. } => {
            local_diagnostic("partial", &format!("{failed} of {of} failed"))
        }
        CliError::Declined => local_diagnostic("declined", "nothing was done"),
        CliError::ClosedPipe => local_diagnostic("closed_pipe", "the reader closed the output"),
        CliError::Interrupted => local_diagnostic("interrupted", "interrupted"),
    }
}

/// Converts an error to a problem document.
pub fn problem_document(failure: &CliError) -> Value {
    match failure {
        CliError::Rejected(report) => report.to_json(),
        CliError::Client { error, .. } => to_json(&to_diagnostic(failure), error.problem(), failure.exit()),
        CliError::Usage { .. }
        | CliError::InUse { .. }
        | CliError::AddressInUse { .. }
        | CliError::Io { .. }
        | CliError::Failed { .. }
        | CliError::Partial { .. }
        | CliError::Declined
        | CliError::ClosedPipe
        | CliError::Interrupted => to_json(&to_diagnostic(failure), None, failure.exit()),
    }
}

/// Creates a diagnostic with one of the command line's own codes, which only JSON output shows.
fn local_diagnostic(code: &'static str, message: &str) -> Diagnostic {
    Diagnostic { local_code: Some(code), ..Diagnostic::plain(visible(message)) }
}

fn client_diagnostic(error: &ClientError) -> Diagnostic {
    match error {
        ClientError::Problem(problem) => problem_diagnostic(problem),
        ClientError::Unreachable { url, why, tries, after, was_sent } => {
            let tried = if *tries == 1 {
                String::new()
            } else {
                format!(", tried {tries} times in {}", seconds(*after))
            };
            let nothing = if *was_sent { "no response from" } else { "no server responds at" };
            local_diagnostic("unreachable", &format!("{nothing} {url} ({why}{tried})"))
        }
        ClientError::MaybeApplied { error, .. } => {
            let mut diagnostic = client_diagnostic(error);
            let note =
                "the response was lost: the request may have been carried out; check before you repeat it";
            diagnostic.notes.push(note.to_owned());
            diagnostic
        }
        ClientError::WithoutProblem { url, status, reason } => {
            let answered = format!("{url} responded {status} {reason}");
            local_diagnostic(
                "unexpected_answer",
                format!("{}, without a problem document", answered.trim_end()).as_str(),
            )
            .help(Some(IS_IT_FORMS.to_owned()))
        }
        ClientError::Unexpected { url, what } => local_diagnostic(
            "unexpected_answer",
            &format!("{url} does not respond like a forms server: {what}"),
        )
        .help(Some(IS_IT_FORMS.to_owned())),
    }
}

const IS_IT_FORMS: &str = "is it a forms server? forms whoami shows where the address came from";

fn problem_diagnostic(problem: &Problem) -> Diagnostic {
    // The detail may be text by the form's author: it is not changed.
    let message = problem.detail.clone().unwrap_or_else(|| lower_first(&problem.title));
    let mut diagnostic = Diagnostic::new(&problem.code.to_string(), visible(&message)); // For a filter, the errors are in the detail already.
    if problem.code != Code::InvalidQuery {
        diagnostic.notes.extend(problem.errors.iter().map(|violation| visible(&violation.message)));
    }
    if problem.status >= 500
        && let Some(id) = &problem.request_id
    {
        diagnostic.notes.push(format!("request id: {}", visible(id)));
    } // An unknown code can only be explained by its server.
    diagnostic.help(problem.code.known().map(|code| format!("forms explain {code}")))
}

/// Lower-cases the first letter: our messages start in lower case, the API's titles do not.
fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        // Abbreviations such as `API` and `E-mail` keep their capitals.
        Some(first) if !characters.as_str().starts_with(|next: char| next.is_uppercase() || next == '-') => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}

/// Formats a number with digits in groups of three: `1 204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(" ")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::to_diagnostic;
    use crate::cli::output::exit::CliError;
    use crate::client::ClientError;

    #[test]
    fn how_often_and_how_long_a_server_was_tried_is_told_unless_it_was_once() {
        for (tries, tried) in [(1, ""), (3, ", tried 3 times in 2.1 s")] {
            let error = ClientError::Unreachable {
                url: "http://127.0.0.1:8787".to_owned(),
                why: "connection refused".to_owned(),
                tries,
                after: Duration::from_millis(2_130),
                was_sent: false,
            };
            let notes = vec!["address from: --url".to_owned()];
            let help = Some("start one: forms serve --data ./store".to_owned());
            let diagnostic = to_diagnostic(&CliError::Client { error, notes, help });
            let expected = format!(
                "error: no server responds at http://127.0.0.1:8787 (connection refused{tried})\n  \
                 = note: address from: --url\n  = help: start one: forms serve --data ./store"
            );
            assert_eq!(diagnostic.render(false, 100), expected);
        }
    }
}
