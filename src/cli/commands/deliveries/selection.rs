//! `--form`, `--integration`, `--status`, `--since` and `--until`: which deliveries a command is about.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::cli::commands::completions::candidates;
use crate::cli::connection::session::Session;
use crate::cli::input::moment::moment;
use crate::cli::output::exit::CliError;
use crate::client::DeliverySelection;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::validation::similar::similar;

#[derive(Debug, Clone, Args)]
pub(super) struct SelectionFlags {
    /// Only those of this form, by id or slug
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    form: Option<String>,
    /// Only those of this integration, by id, or by name with --form
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    integration: Option<String>,
    /// Only those of this submission, by id
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    submission: Option<String>,
    /// Only those with these statuses, such as dead,pending
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status)]
    #[arg(add = ArgValueCandidates::new(statuses))]
    status: Vec<String>,
    /// Only those of events since this time: 2026-11-20, 2026-11-20T09:00:00Z, or 2h for the last two hours
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those of events before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

fn statuses() -> Vec<CompletionCandidate> {
    candidates(DeliveryStatus::ALL.iter().map(|status| status.name().to_owned()))
}

/// Parses the name of a status. One that is not similar to a known name may be a newer server's.
fn status(text: &str) -> Result<String, String> {
    let name = text.trim().to_lowercase().replace(['-', ' '], "_");
    let known = DeliveryStatus::ALL.map(DeliveryStatus::name);
    match similar(&name, known).filter(|_| !known.contains(&name.as_str())) {
        Some(near) => Err(format!("Unknown status {text}. Did you mean {near}?")),
        None => Ok(name),
    }
}

impl SelectionFlags {
    /// Returns the selection of a list, or of an operation on all that match.
    ///
    /// # Errors
    /// If a time is not valid.
    pub(super) fn selection(&self, session: &Session) -> Result<DeliverySelection, CliError> {
        let Self { form, integration, submission, status, since, until } = self.clone();
        let now = session.now();
        let time = |time: Option<String>| time.map(|time| moment(&time, now)).transpose();
        let (since, until) = (time(since)?, time(until)?);
        let all = DeliverySelection::default();
        Ok(DeliverySelection { form, integration, submission, status, since, until, ..all })
    }
}
