//! `--form`, `--integration`, `--status`, `--since` and `--until`: which deliveries a command is about.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};

use crate::api::DeliverySelection;
use crate::cli::connection::session::Session;
use crate::cli::input::moment::moment;
use crate::cli::output::exit::CliError;
use crate::client::DeliveryQuery;

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
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    #[arg(value_parser = NonEmptyStringValueParser::new().map(|text| text.trim().to_lowercase().replace(['-', ' '], "_")))]
    status: Vec<String>,
    /// Only those of events since this time: 2026-11-20, 2026-11-20T09:00:00Z, or 2h for the last two hours
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those of events before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl SelectionFlags {
    /// Whether no flag is given.
    pub(super) fn is_empty(&self) -> bool {
        let Self { form, integration, submission, status, since, until } = self;
        let texts = [form, integration, submission, since, until];
        status.is_empty() && texts.iter().all(|text| text.is_none())
    }

    /// Returns the filters of a list.
    ///
    /// # Errors
    /// If a time is not valid.
    pub(super) fn query(&self, session: &Session) -> Result<DeliveryQuery, CliError> {
        let Self { form, integration, submission, status, since, until } = self.clone();
        let now = session.now();
        let time = |time: Option<String>| time.map(|time| moment(&time, now)).transpose();
        Ok(DeliveryQuery { form, integration, submission, status, since: time(since)?, until: time(until)? })
    }

    /// Returns the selection for an operation on all that match.
    ///
    /// # Errors
    /// If a time is not valid.
    pub(super) fn selection(&self, session: &Session) -> Result<DeliverySelection, CliError> {
        let DeliveryQuery { form, integration, submission, status, since, until } = self.query(session)?;
        let (dry_run, rate) = (false, None);
        Ok(DeliverySelection { form, integration, submission, status, since, until, dry_run, rate })
    }
}
