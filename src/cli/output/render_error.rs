//! The texts of failures: what happened, and what to do about it.
#![deny(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use serde_json::Value;

use crate::api::{Code, Problem};
use crate::cli::output::diagnostics::{Finding, to_json};
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::cli::output::visible;
use crate::client::ClientError;

/// The codes that only the command line has, as `-o json` shows them, and what they mean.
pub const CODES: [(&str, &str); 11] = [
    (
        "usage",
        "The command was called in a way it cannot follow. `forms help <command>` shows how it is called.",
    ),
    (
        "store_in_use",
        "One process works on a data directory at a time. Leave --data out where a server holds it, or wait for the other process.",
    ),
    (
        "address_in_use",
        "Another program listens there. Choose another address with --listen, or port 0 for any free one.",
    ),
    ("io", "Reading or writing failed on this machine. The message has the reason of the operating system."),
    (
        "failed",
        "This machine cannot do it, for the reason in the message, or this is a bug: please report it.",
    ),
    ("partial", "Some of several items failed. Each has its own problem in `failures`; the others are done."),
    ("declined", "The question was answered with no. Nothing was done."),
    ("closed_pipe", "The reader closed the output, as `head` does. That is not a failure."),
    ("interrupted", "Ctrl-C was pressed. What was sent before may have been carried out."),
    (
        "unreachable",
        "No server answers at the address. `forms whoami` shows where the address came from; `forms serve --data DIR` starts a server.",
    ),
    (
        "unexpected_answer",
        "What answers at the address is not a forms server, or one of another version. `forms whoami` shows where the address came from.",
    ),
];

/// The failure as a person reads it.
pub fn tell(error: &CliError) -> Finding {
    match error {
        CliError::Usage { message, help } => coded("usage", message).help(help.clone()),
        CliError::Rejected(report) => {
            coded("validation_failed", report.summary.as_deref().unwrap_or("not accepted"))
        }
        CliError::Client { error, notes, help } => {
            let mut finding = of_client(error);
            finding.notes.extend(notes.iter().cloned());
            finding.help = help.clone().or(finding.help);
            finding
        }
        CliError::InUse { data, holder, help } => {
            let by = match holder {
                Some((pid, Some(url))) => format!("a running server (pid {pid}, {url})"),
                Some((pid, None)) => format!("another process (pid {pid})"),
                None => "another process".to_owned(),
            };
            coded("store_in_use", &format!("{} is in use by {by}", data.display()))
                .help(Some((*help).to_owned()))
        }
        CliError::AddressInUse { address, holder } => {
            let by = holder.as_ref().map_or_else(
                || "another program".to_owned(),
                |(pid, data)| format!("a forms server of yours (pid {pid}, {})", data.display()),
            );
            coded("address_in_use", &format!("{address} is in use by {by}"))
                .help(Some("choose another with --listen, or 127.0.0.1:0 for any free one".to_owned()))
        }
        CliError::Io { what, source } => coded("io", &format!("{what}: {}", reason(source))),
        CliError::Failed { what, causes } => Finding { notes: causes.clone(), ..coded("failed", what) },
        CliError::Partial { failed, of, .. } => coded("partial", &format!("{failed} of {of} failed")),
        CliError::Declined => coded("declined", "nothing was done"),
        CliError::ClosedPipe => coded("closed_pipe", "the reader has gone"),
        CliError::Interrupted => coded("interrupted", "interrupted"),
    }
}

/// The failure as a program reads it: a problem document.
pub fn document(failure: &CliError) -> Value {
    match failure {
        CliError::Rejected(report) => report.to_json(),
        CliError::Client { error, .. } => to_json(&tell(failure), error.problem(), failure.exit()),
        CliError::Usage { .. }
        | CliError::InUse { .. }
        | CliError::AddressInUse { .. }
        | CliError::Io { .. }
        | CliError::Failed { .. }
        | CliError::Partial { .. }
        | CliError::Declined
        | CliError::ClosedPipe
        | CliError::Interrupted => to_json(&tell(failure), None, failure.exit()),
    }
}

/// These codes are the command line's own: shown to programs, while people read the text alone.
fn coded(code: &'static str, message: &str) -> Finding {
    Finding { local_code: Some(code), ..Finding::plain(visible(message)) }
}

fn of_client(error: &ClientError) -> Finding {
    match error {
        ClientError::Problem(problem) => of_problem(problem),
        ClientError::Unreachable { url, why, tries, after, was_sent } => {
            let tried = if *tries == 1 {
                String::new()
            } else {
                format!(", tried {tries} times in {}", seconds(*after))
            };
            let nothing = if *was_sent { "no answer from" } else { "no server answers at" };
            coded("unreachable", &format!("{nothing} {url} ({why}{tried})"))
        }
        ClientError::MaybeApplied { error, .. } => {
            let mut finding = of_client(error);
            let note = "an answer was lost: the request may have been carried out; look before you repeat it";
            finding.notes.push(note.to_owned());
            finding
        }
        ClientError::WithoutProblem { url, status, reason } => {
            let answered = format!("{url} answered {status} {reason}");
            coded(
                "unexpected_answer",
                format!("{}, without a problem document", answered.trim_end()).as_str(),
            )
            .help(Some(IS_IT_FORMS.to_owned()))
        }
        ClientError::Unexpected { url, what } => {
            coded("unexpected_answer", &format!("{url} does not answer like a forms server: {what}"))
                .help(Some(IS_IT_FORMS.to_owned()))
        }
    }
}

const IS_IT_FORMS: &str = "is it a forms server? forms whoami shows where the address came from";

fn of_problem(problem: &Problem) -> Finding {
    // A detail may be what the form's author has written: it stays as it is.
    let message = problem.detail.clone().unwrap_or_else(|| lower_first(&problem.title));
    let mut finding = Finding::new(&problem.code.to_string(), visible(&message));
    // A filter's errors are in the detail.
    if problem.code != Code::InvalidQuery {
        finding.notes.extend(problem.errors.iter().map(|violation| visible(&violation.message)));
    }
    if problem.status >= 500
        && let Some(id) = &problem.request_id
    {
        finding.notes.push(format!("request id: {}", visible(id)));
    }
    // Only the server that sent another code knows what it means.
    finding.help(problem.code.known().map(|code| format!("forms explain {code}")))
}

/// Our messages begin in lower case; the titles of the API are sentences.
fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        // `API`, `E-mail`: an abbreviation keeps its capitals.
        Some(first) if !characters.as_str().starts_with(|next: char| next.is_uppercase() || next == '-') => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}

/// `1 204`: digits in groups of three.
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

    use super::tell;
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
            let told = tell(&CliError::Client { error, notes, help });
            let expected = format!(
                "error: no server answers at http://127.0.0.1:8787 (connection refused{tried})\n  \
                 = note: address from: --url\n  = help: start one: forms serve --data ./store"
            );
            assert_eq!(told.draw(false, 100), expected);
        }
    }
}
