//! Running a command on several items, one after the other.
//!
//! A single item prints its object, or fails with its error. Of several, `-o json` prints one document with all results,
//! and one line with all failures.

use crate::cli::connection::hints;
use crate::cli::connection::session::Session;
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::render_error;

/// A command's progress over several items.
pub(super) struct Batch<'a> {
    session: &'a Session,
    total: usize,
    exits: Vec<Exit>,
    /// Problem documents, for one line of JSON at the end.
    failures: Vec<serde_json::Value>,
    /// Help texts printed so far: each is printed once.
    helps: Vec<String>,
}

impl<'a> Batch<'a> {
    /// Starts a command on `total` items.
    pub(super) fn begin(session: &'a Session, total: usize) -> Self {
        if total > 1 {
            session.output.begin_batch();
        }
        Self::of_failures(session, total)
    }

    /// Starts a command on `total` items that prints their results itself.
    pub(super) fn of_failures(session: &'a Session, total: usize) -> Self {
        Self { session, total, exits: Vec::new(), failures: Vec::new(), helps: Vec::new() }
    }

    /// Records the result for `item`.
    ///
    /// # Errors
    /// If the command should stop: there is only one item, or it was interrupted, or the reader closed stdout.
    pub(super) fn record(&mut self, item: &str, ended: Result<(), CliError>) -> Result<(), CliError> {
        let Err(error) = ended else { return Ok(()) };
        if self.total == 1 || matches!(error, CliError::ClosedPipe | CliError::Interrupted) {
            return Err(error);
        }
        let error = hints::annotate(self.session, error);
        self.exits.push(error.exit());
        if self.session.output.reports_json() {
            let mut document = render_error::problem_document(&error);
            document["item"] = item.into();
            self.failures.push(document);
            return Ok(());
        }
        let help = render_error::to_diagnostic(&error).help.filter(|help| !self.helps.contains(help));
        self.session.output.report_item_error(item, &error, help.as_deref());
        self.helps.extend(help);
        Ok(())
    }

    /// Returns the result of the whole command.
    ///
    /// # Errors
    /// If an item failed. If all failed with the same exit code, that is the exit code; otherwise it is "partial".
    pub(super) fn finish(self) -> Result<(), CliError> {
        let first = self.exits.first().copied().unwrap_or(Exit::Done);
        let is_same = self.exits.len() == self.total && self.exits.iter().all(|exit| *exit == first);
        self.end(if is_same { first } else { Exit::Partial })
    }

    /// Returns the result of a command whose items are independent: the exit code is the worst one.
    ///
    /// # Errors
    /// If an item failed.
    pub(super) fn finish_with_worst(self) -> Result<(), CliError> {
        let worst = self.exits.iter().copied().max_by_key(|exit| exit.code());
        self.end(worst.unwrap_or(Exit::Done))
    }

    fn end(self, exit: Exit) -> Result<(), CliError> {
        match self.exits.len() {
            0 => Ok(()),
            failed => Err(CliError::Partial { failed, of: self.total, exit, failures: self.failures }),
        }
    }
}

/// Calls `act` for each form; a failure does not stop the others.
pub(super) async fn for_each(
    session: &Session,
    forms: &[String],
    act: impl AsyncFn(&str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut batch = Batch::begin(session, forms.len());
    for form in forms {
        let ended = match act(form).await {
            // With one form, the command's own error handling adds the suggestion.
            Err(error) if forms.len() > 1 => Err(session.suggest(error).await),
            ended => ended,
        };
        batch.record(form, ended)?;
    }
    batch.finish()
}
