//! `--form`, `--integration`, `--status`, `--since` and `--until`: which deliveries a command is about.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::api::Code;
use crate::cli::commands::completions::candidates;
use crate::cli::connection::session::Session;
use crate::cli::input::moment::moment;
use crate::cli::output::exit::CliError;
use crate::cli::output::wrap;
use crate::client::{ClientError, DeliverySelection};
use crate::domain::delivery::DeliveryStatus;

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
    #[arg(long, value_name = "STATUS", value_delimiter = ',', add = ArgValueCandidates::new(statuses))]
    #[arg(value_parser = NonEmptyStringValueParser::new().map(|text| text.trim().to_lowercase().replace(['-', ' '], "_")))]
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

impl SelectionFlags {
    /// Whether no flag is given.
    pub(super) fn is_empty(&self) -> bool {
        let Self { form, integration, submission, status, since, until } = self;
        let texts = [form, integration, submission, since, until];
        status.is_empty() && texts.iter().all(|text| text.is_none())
    }

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

    /// Adds to the server's error about the selection what to change on the command line.
    pub(super) fn explain(&self, session: &Session, error: CliError) -> CliError {
        let CliError::Client { error: ClientError::Problem(problem), notes, help: None } = error else {
            return error;
        };
        let about =
            |name: &str| problem.errors.iter().find(|one| one.pointer.split('/').nth(1) == Some(name));
        let help = match &self.form {
            Some(form) if problem.code == Code::IntegrationNotFound => {
                Some(format!("{} integrations list {form} shows them", session.command_prefix()))
            }
            None if about("integration").is_some() => {
                Some("add --form FORM, or use the integration's id".to_owned())
            }
            _ => about("status").map(|violation| {
                let known = DeliveryStatus::ALL.map(|status| status.name().to_owned()).to_vec();
                let names = if violation.allowed.is_empty() { &known } else { &violation.allowed };
                wrap(&format!("expected one of: {}", names.join(", ")), 68)
            }),
        };
        CliError::Client { error: ClientError::Problem(problem), notes, help }
    }
}
