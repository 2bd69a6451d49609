//! Commands on several items: they are worked on one by one, and told together.
//!
//! One item's result is its object, and its failure the command's. Of several, programs read one document with all
//! that was done and one line with all that was not.

use crate::cli::connection::session::Session;
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::render_error;

/// The work on several items.
pub(super) struct Several<'a> {
    session: &'a Session,
    of: usize,
    done: usize,
    exits: Vec<Exit>,
    /// What was said to do about those that failed: once is enough.
    helps: Vec<String>,
}

impl<'a> Several<'a> {
    /// Begins the work on `of` items.
    pub(super) fn begin(session: &'a Session, of: usize) -> Self {
        if of > 1 {
            session.output.begin_series();
        }
        Self { session, of, done: 0, exits: Vec::new(), helps: Vec::new() }
    }

    /// Takes note of how the work on `item` ended.
    ///
    /// # Errors
    /// If nothing more is to be done: it was the only item, or the person or the reader has gone.
    pub(super) fn note(&mut self, item: &str, ended: Result<(), CliError>) -> Result<(), CliError> {
        match ended {
            Err(error) if self.of > 1 && !matches!(error, CliError::ClosedPipe | CliError::Interrupted) => {
                let error = self.session.annotate(error);
                self.exits.push(error.exit());
                let help = render_error::tell(&error).help.filter(|help| !self.helps.contains(help));
                self.session.output.fail_item(item, &error, help.as_deref());
                self.helps.extend(help);
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.done += 1;
                Ok(())
            }
        }
    }

    /// How the command ends.
    ///
    /// # Errors
    /// If an item failed. Where none was done and all failed alike, doing it
    /// again is as good or as bad as for one: the exit is theirs.
    pub(super) fn end(self) -> Result<(), CliError> {
        let (failed, of) = (self.of - self.done, self.of);
        let Some(first) = self.exits.first().copied() else { return Ok(()) };
        let is_partial = self.done > 0 || self.exits.iter().any(|exit| *exit != first);
        let exit = if is_partial { Exit::Partial } else { first };
        Err(CliError::Partial { failed, of, exit })
    }

    /// How the command ends where what was done does not help what failed: as the worst failure.
    ///
    /// # Errors
    /// If an item failed.
    pub(super) fn end_as_worst(self) -> Result<(), CliError> {
        match self.exits.iter().max_by_key(|exit| exit.code()) {
            Some(worst) => Err(CliError::Partial { failed: self.exits.len(), of: self.of, exit: *worst }),
            None => Ok(()),
        }
    }
}

/// Does the same to each form; one that fails does not keep the others.
pub(super) async fn each(
    session: &Session,
    forms: &[String],
    act: impl AsyncFn(&str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut several = Several::begin(session, forms.len());
    for form in forms {
        let ended = match act(form).await {
            // One alone fails as the command does, which suggests for itself.
            Err(error) if forms.len() > 1 => Err(session.suggest(error).await),
            ended => ended,
        };
        several.note(form, ended)?;
    }
    several.end()
}
