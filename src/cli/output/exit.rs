//! Errors of commands, and the table of exit codes.
//!
//! Scripts depend on the numbers: a new error uses one of them, and none changes its meaning.
#![deny(clippy::wildcard_enum_match_arm)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::output::diagnostics::Report;
use crate::client::ClientError;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    No = 1,
    Usage = 2,
    NotFound = 3,
    NotAllowed = 4,
    WrongState = 5,
    Rejected = 6,
    Unavailable = 7,
    Partial = 8,
    Bug = 70,
    Interrupted = 130,
}

impl Exit {
    /// Each exit code with its name and its meaning, in numerical order.
    pub const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Done, "done", "done; also if the list is empty, or there was nothing to do"),
        (
            Self::No,
            "no",
            "no: a confirmation was declined, a test failed, forms differ, or a check found something",
        ),
        (Self::Usage, "usage", "usage: a flag, a missing file, a confirmation that cannot be asked for"),
        (Self::NotFound, "not found", "not found: no such form, submission, key, workspace or context"),
        (Self::NotAllowed, "not allowed", "not allowed: no API key, a wrong one, or a missing scope"),
        (
            Self::WrongState,
            "wrong state",
            "wrong state: a draft, a slug taken, a change by others, a store in use",
        ),
        (Self::Rejected, "rejected", "rejected: the file or the answers are not valid"),
        (
            Self::Unavailable,
            "unavailable",
            "unavailable: the server does not respond, or cannot serve the request now",
        ),
        (Self::Partial, "partial", "partial: some of several items failed"),
        (Self::Bug, "failed", "input or output failed, or this is a bug"),
        (Self::Interrupted, "interrupted", "interrupted by Ctrl-C"),
    ];

    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the exit code for an HTTP status of a problem.
    pub fn from_status(status: u16) -> Self {
        match status {
            404 | 410 => Self::NotFound,
            401 | 403 => Self::NotAllowed,
            409 | 412 => Self::WrongState,
            408 | 429 | 500.. => Self::Unavailable,
            _ => Self::Rejected,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum CliError {
    /// The command line, the environment or a file name is invalid.
    Usage { message: String, help: Option<String> },
    /// No context has this name.
    UnknownContext { name: String, help: String },
    /// The input is invalid; the report has all problems with their locations.
    Rejected(Box<Report>),
    /// The server refused the request, or did not respond.
    Client { error: ClientError, notes: Vec<String>, help: Option<String> },
    /// Another process holds the store; the help depends on how it was named.
    InUse { data: PathBuf, holder: Option<(u32, Option<String>)>, help: &'static str },
    /// The listen address is in use, by a server of this user if one is known.
    AddressInUse { address: String, holder: Option<(u32, PathBuf)> },
    /// An input or output operation failed locally.
    Io { message: String, source: io::Error },
    /// The operation failed locally for another reason.
    Failed { message: String, causes: Vec<String> },
    /// Some of several items failed. Each failure was reported when it happened, or its problem document is in `failures`.
    Partial { failed: usize, of: usize, exit: Exit, failures: Vec<serde_json::Value> },
    /// The test of an integration failed, or tests of a form; the report was shown.
    TestFailed { summary: String },
    /// The journal in a data directory is damaged; the places were shown.
    Damaged { data: String, places: usize },
    /// `doctor` found something; the checks were shown.
    Findings { count: usize },
    /// A salvage has lost something: what was counted, which is all if the rest is complete.
    Lost { counted: String, is_complete: bool },
    /// A store that is being copied goes on changing.
    Differs { from: String },
    /// A form differs from its file; the changes were shown.
    FormsDiffer,
    /// The user declined.
    Declined,
    /// The reader of stdout closed it; nothing is reported.
    ClosedPipe,
    /// Ctrl-C.
    Interrupted,
}

impl CliError {
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: None }
    }

    pub fn usage_with_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: Some(help.into()) }
    }

    /// Fails with all usage errors in one, in order; if another error is first, with that one.
    pub fn combine(errors: Vec<Self>) -> Result<(), Self> {
        let join = |one: Self, other: Self| match (one, other) {
            (Self::Usage { message, help }, Self::Usage { message: next, help: more }) => {
                let more = more.filter(|more| help.as_ref() != Some(more));
                let help: Vec<_> = [help, more].into_iter().flatten().collect();
                let help = Some(help.join("; ")).filter(|help| !help.is_empty());
                Self::Usage { message: format!("{message}; {next}"), help }
            }
            (first, _) => first,
        };
        errors.into_iter().reduce(join).map_or(Ok(()), Err)
    }

    /// Creates an error from the client with help.
    pub fn client_with_help(error: ClientError, help: impl Into<String>) -> Self {
        Self::Client { error, notes: Vec::new(), help: Some(help.into()) }
    }

    /// Creates an I/O error with `message` on what failed.
    pub fn io(message: impl Into<String>, source: io::Error) -> Self {
        Self::Io { message: message.into(), source }
    }

    /// Adds to an error of output what is stored nevertheless.
    pub fn after(mut self, stored: &str) -> Self {
        if let Self::Io { message, .. } = &mut self {
            *message = format!("{stored}, but {message}");
        }
        self
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } => Exit::Usage,
            Self::UnknownContext { .. } => Exit::NotFound,
            Self::Rejected(report) => report.exit(),
            Self::Client { error, .. } => error.status().map_or(Exit::Unavailable, Exit::from_status),
            Self::InUse { .. } | Self::AddressInUse { .. } => Exit::WrongState,
            Self::Io { .. } | Self::Failed { .. } => Exit::Bug,
            Self::Partial { exit, .. } => *exit,
            Self::Declined
            | Self::FormsDiffer
            | Self::TestFailed { .. }
            | Self::Damaged { .. }
            | Self::Findings { .. }
            | Self::Differs { .. }
            | Self::Lost { .. } => Exit::No,
            Self::ClosedPipe => Exit::Done,
            Self::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        Self::Client { error, notes: Vec::new(), help: None }
    }
}

impl From<Report> for CliError {
    fn from(report: Report) -> Self {
        Self::Rejected(Box::new(report))
    }
}
