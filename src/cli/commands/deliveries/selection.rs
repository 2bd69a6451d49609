//! `--form`, `--integration`, `--status`, `--since` and `--until`: which deliveries a command is about. The API's names are the
//! same.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde::Serialize;

use crate::cli::commands::completions::candidates;
use crate::cli::input::values::moment;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::validation::similar::similar;

#[derive(Debug, Default, PartialEq, Eq, Args, Serialize)]
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
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<String>,
    /// Only those of events before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,
}

fn statuses() -> Vec<CompletionCandidate> {
    candidates(DeliveryStatus::ALL.iter().map(|status| status.name().to_owned()))
}

/// Parses the name of a status.
fn status(text: &str) -> Result<String, String> {
    let name = text.trim().to_lowercase().replace(['-', ' '], "_");
    let known = DeliveryStatus::ALL.map(DeliveryStatus::name);
    if known.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(match similar(&name, known) {
        Some(near) => format!("Unknown status {text}. Did you mean {near}?"),
        None => format!("Unknown status {text}. Statuses are {}", known.join(", ")),
    })
}
