//! Error messages of the command line, with help.
#![deny(clippy::wildcard_enum_match_arm)]

use serde_json::{Value, json};

use crate::api::{Code, Problem};
use crate::cli::output::diagnostics::Diagnostic;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::io_error::reason;
use crate::cli::output::text::lower_first;
use crate::cli::output::visible;
use crate::client::ClientError;

/// Codes that only the command line has, as in `-o json`, with their meanings.
pub const CODES: [(&str, &str); 21] = [
    ("usage", "The command line is not valid. `forms help <command>` shows the usage."),
    (
        "context_not_found",
        "There is no context of this name. `forms context list` shows those that `forms login` has stored.",
    ),
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
    ("findings", "`forms doctor` found something. Each check that it prints says what to do."),
    ("partial", "Some of several items failed. Each has its own problem in `failures`; the others are done."),
    (
        "test_failed",
        "The integration did not accept the test event, or a form has not passed its tests. What the command shows has the reasons.",
    ),
    (
        "journal_damaged",
        "Files of the journal are damaged or missing; `forms store verify` shows where. A server refuses to start on them, so that nothing is lost silently. Restore a backup, or copy what can be read: `forms store salvage`.",
    ),
    (
        "lost",
        "The salvaged store lacks something that the damaged one had; the report says what is known of it.",
    ),
    (
        "differs",
        "The store that is being copied changes meanwhile. Stop what writes to it, and copy again: only what has changed is written.",
    ),
    ("forms_differ", "`forms diff --exit-code` found changes; it has shown them."),
    (
        "breaking_change",
        "A question gets another type, by which its stored answers cannot be read. Give it another id, or allow it: --allow-breaking.",
    ),
    ("declined", "You answered no. Nothing was done."),
    ("closed_pipe", "The reader closed the output, as `head` does. This is not a failure."),
    ("interrupted", "Ctrl-C was pressed. What was sent before may have been carried out."),
    (
        "unreachable",
        "No server responds at the address. `forms whoami` shows where the address came from; `forms serve --data DIR` starts a server.",
    ),
    (
        "untrusted_certificate",
        "The server's certificate is not valid for the address, has expired, or is from an unknown authority: the message has the reason. SSL_CERT_FILE names a file of authorities to trust instead of the system's.",
    ),
    ("plain_http", "The address begins with https://, but the server does not use TLS. Use http://."),
    (
        "unexpected_answer",
        "The server at the address is not a forms server, or is of another version. `forms whoami` shows where the address came from.",
    ),
];

pub fn to_diagnostic(error: &CliError) -> Diagnostic {
    match error {
        CliError::Usage { message, help } => local_diagnostic("usage", message).help(help.clone()),
        CliError::UnknownContext { name, help } => {
            local_diagnostic("context_not_found", &format!("there is no context `{name}`"))
                .help(Some(help.clone()))
        }
        CliError::Rejected(report) => local_diagnostic("validation_failed", &report.summary),
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
        CliError::Io { message, source } => local_diagnostic("io", &format!("{message}: {}", reason(source))),
        CliError::Failed { message, causes } => {
            Diagnostic { notes: causes.clone(), ..local_diagnostic("failed", message) }
        }
        CliError::Partial { failed, of, .. } => {
            local_diagnostic("partial", &format!("{failed} of {of} failed"))
        }
        CliError::TestFailed { summary } => local_diagnostic("test_failed", summary),
        CliError::Damaged { data, places } => {
            let places = count_noun(*places, "place");
            let help =
                "restore a backup: forms store restore FILE --data DIR; or see forms store salvage --help";
            local_diagnostic("journal_damaged", &format!("the store in {data} is damaged in {places}"))
                .help(Some(help.to_owned()))
        }
        CliError::Lost { counted, is_complete } => {
            let (least, more) = match is_complete {
                true => ("", ""),
                false => ("at least ", "; the writes listed above may have held more"),
            };
            local_diagnostic("lost", &format!("lost: {least}{counted}{more}"))
                .help(Some("answers whose form is lost are in the folder lost/ of the new store".to_owned()))
        }
        CliError::Differs { from } => {
            let help = "stop what writes to it, and copy again: only what has changed is written";
            local_diagnostic("differs", &format!("{from} goes on changing")).help(Some(help.to_owned()))
        }
        CliError::Findings { count } => {
            local_diagnostic("findings", &format!("{} above", count_noun(*count as u64, "finding")))
        }
        CliError::FormsDiffer => local_diagnostic("forms_differ", "the forms differ from the files"),
        CliError::Declined => local_diagnostic("declined", "not confirmed, so it is unchanged"),
        CliError::ClosedPipe => local_diagnostic("closed_pipe", "the reader closed the output"),
        CliError::Interrupted => local_diagnostic("interrupted", "interrupted"),
    }
}

/// Converts an error to a problem document, based on the server's if there is one.
pub fn problem_document(error: &CliError) -> Value {
    if let CliError::Rejected(report) = error {
        return report.to_json();
    }
    let diagnostic = to_diagnostic(error);
    let problem = if let CliError::Client { error, .. } = error { error.problem() } else { None };
    let mut document = match problem {
        Some(problem) => serde_json::to_value(problem).unwrap_or_default(),
        None => {
            let code = diagnostic.code.as_deref().or(diagnostic.local_code);
            json!({"type": "about:blank", "title": diagnostic.message, "code": code})
        }
    };
    if let CliError::Partial { failures, .. } = error
        && !failures.is_empty()
    {
        document["failures"] = json!(failures);
    }
    document["exit"] = json!(error.exit().code());
    document["hint"] = json!(diagnostic.hint());
    document
}

/// Creates a diagnostic with one of the command line's own codes, which only JSON output shows.
fn local_diagnostic(code: &'static str, message: &str) -> Diagnostic {
    Diagnostic { local_code: Some(code), ..Diagnostic::plain(visible(message)) }
}

fn client_diagnostic(error: &ClientError) -> Diagnostic {
    match error {
        ClientError::Problem(problem) => problem_diagnostic(problem),
        ClientError::Unreachable { .. } => local_diagnostic("unreachable", &error.to_string()),
        ClientError::Untrusted { .. } => local_diagnostic("untrusted_certificate", &error.to_string()),
        ClientError::PlainHttp { .. } => local_diagnostic("plain_http", &error.to_string()),
        ClientError::Unexpected { .. } => local_diagnostic("unexpected_answer", &error.to_string()),
        ClientError::MaybeApplied { error, .. } => {
            let note =
                "the response was lost: the request may have been carried out; check before you repeat it";
            let mut diagnostic = client_diagnostic(error);
            diagnostic.notes.push(note.to_owned());
            diagnostic
        }
    }
}

fn problem_diagnostic(problem: &Problem) -> Diagnostic {
    // The detail may be text by the form's author: it is not changed.
    let message = problem.detail.clone().unwrap_or_else(|| lower_first(&problem.title));
    let mut diagnostic = Diagnostic::new(&problem.code.to_string(), visible(&message));
    // For a filter, the errors are in the detail already.
    if problem.code != Code::InvalidQuery {
        diagnostic.notes.extend(problem.errors.iter().map(|violation| visible(&violation.message)));
    }
    if problem.status >= 500
        && let Some(id) = &problem.request_id
    {
        diagnostic.notes.push(format!("request id: {}", visible(id)));
    }
    // An unknown code can only be explained by its server.
    diagnostic.help(problem.code.known().map(|code| format!("forms explain {code}")))
}
