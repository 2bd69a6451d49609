//! `--format`: reports for people, for programs, and for GitHub.

use clap::ValueEnum;

use crate::cli::commands::{CliError, Session};
use crate::cli::output::Format;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people
    Text,
    /// Same as -o json
    Json,
    /// For GitHub
    Github,
}

impl ReportFormat {
    /// Returns the output format that the flag selects.
    pub(super) fn output(flag: Option<Self>) -> Option<Format> {
        (flag == Some(Self::Json)).then_some(Format::Json)
    }

    /// Refuses the flag beside `--output`, which is global, so that clap cannot.
    pub(super) fn refuse_output(flag: Option<Self>, session: &Session) -> Result<(), CliError> {
        if flag.is_some() && session.global.output.is_some() {
            return Err(CliError::usage("--format and --output cannot be used together"));
        }
        Ok(())
    }
}
