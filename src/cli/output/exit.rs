//! Why a command failed, and the one table of exit codes.
//!
//! Scripts depend on the numbers: a new failure takes one of them, and none changes its meaning.
#![deny(clippy::wildcard_enum_match_arm)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::output::diagnostics::Report;
use crate::client::ClientError;

/// How a command ended, as its exit code tells.
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
    /// All ways to end, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::No,
        Self::Usage,
        Self::NotFound,
        Self::NotAllowed,
        Self::WrongState,
        Self::Rejected,
        Self::Unavailable,
        Self::Partial,
        Self::Bug,
        Self::Interrupted,
    ];

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::No => "no",
            Self::Usage => "usage",
            Self::NotFound => "not found",
            Self::NotAllowed => "not allowed",
            Self::WrongState => "wrong state",
            Self::Rejected => "rejected",
            Self::Unavailable => "unavailable",
            Self::Partial => "partial",
            Self::Bug => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// When it is used, for `forms help exit-codes`.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done; also an empty list, and what was done already",
            Self::No => "the answer is no: a question was declined",
            Self::Usage => "usage: a flag, a missing file, a confirmation that cannot be asked for",
            Self::NotFound => "not found: no such form or submission",
            Self::NotAllowed => "not allowed: no API key, a wrong one, or a missing scope",
            Self::WrongState => {
                "wrong state: a draft, a slug that is taken, a change by others, a store in use"
            }
            Self::Rejected => "rejected: the file or the answers are not valid",
            Self::Unavailable => "unavailable: no server answers, or it cannot now; try again later",
            Self::Partial => "partial: some of several items failed",
            Self::Bug => "input or output failed, or this is a bug",
            Self::Interrupted => "interrupted by Ctrl-C",
        }
    }

    /// How a request ended that the server answered with a problem of this HTTP status.
    pub fn of_status(status: u16) -> Self {
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

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum CliError {
    /// The command line, the environment or a file's name is wrong.
    Usage { message: String, help: Option<String> },
    /// What was written is not acceptable, with every problem and where it stands.
    Rejected(Box<Report>),
    /// The server said no, or did not answer.
    Client { error: ClientError, notes: Vec<String>, help: Option<String> },
    /// Another process holds the store; the help is for whoever named it.
    InUse { data: PathBuf, holder: Option<(u32, Option<String>)>, help: &'static str },
    /// The address to listen at is taken, by a server of this user where one is known.
    AddressInUse { address: String, holder: Option<(u32, PathBuf)> },
    /// Reading or writing failed on this machine.
    Io { what: String, source: io::Error },
    /// This machine cannot do it for a reason of its own.
    Failed { what: String, causes: Vec<String> },
    /// Some of several items failed; each failure was told when it happened.
    Partial { failed: usize, of: usize, exit: Exit },
    /// The person said no.
    Declined,
    /// Whoever reads our output has gone: nothing to tell, and nobody to tell it.
    ClosedPipe,
    /// Ctrl-C.
    Interrupted,
}

impl CliError {
    /// A mistake in how the command was called.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: None }
    }

    /// The same, with what to do about it.
    pub fn usage_with_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: Some(help.into()) }
    }

    /// Several mistakes in how the command was called as one: told in the order they stand. Of other failures the first.
    ///
    /// # Errors
    /// If there is any.
    pub fn together(errors: Vec<Self>) -> Result<(), Self> {
        let join = |one: Self, other: Self| match (one, other) {
            (Self::Usage { message, help }, Self::Usage { message: next, help: more }) => {
                let help: Vec<_> = [help, more].into_iter().flatten().collect();
                let help = Some(help.join("; ")).filter(|help| !help.is_empty());
                Self::Usage { message: format!("{message}; {next}"), help }
            }
            (first, _) => first,
        };
        errors.into_iter().reduce(join).map_or(Ok(()), Err)
    }

    /// No answer, or a no, with what to do about it.
    pub fn of_client(error: ClientError, help: impl Into<String>) -> Self {
        Self::Client { error, notes: Vec::new(), help: Some(help.into()) }
    }

    /// Reading or writing `what` failed.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    /// How the command ends with this failure.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } => Exit::Usage,
            Self::Rejected(report) => report.exit(),
            Self::Client { error, .. } => error.status().map_or(Exit::Unavailable, Exit::of_status),
            Self::InUse { .. } | Self::AddressInUse { .. } => Exit::WrongState,
            Self::Io { .. } | Self::Failed { .. } => Exit::Bug,
            Self::Partial { exit, .. } => *exit,
            Self::Declined => Exit::No,
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
