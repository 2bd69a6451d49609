//! Carrying out begun attempts.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::csv_file::{self, CsvTarget};
use super::{DeliveryService, report};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::csv_file::CsvPosition;
use crate::domain::integration::outbound::{CsvRow, MailMessage, Outbound};
use crate::domain::integration::plan::{PlanError, PlannedAttempt};
use crate::id::FormId;
use crate::store::{BegunAttempt, FinishedAttempt, QueueId};

/// Deliveries of a queue that are sent together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) queue: QueueId,
    pub(super) form: Arc<Form>,
    pub(super) integration: Arc<Integration>,
    pub(super) attempts: Vec<BegunAttempt>,
    /// The acknowledged end of a CSV file.
    pub(super) file: Option<CsvPosition>,
}

/// The outcome of a batch.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    pub(super) finished: Vec<FinishedAttempt>,
    /// The new end of a CSV file.
    pub(super) file: Option<CsvPosition>,
}

impl Outcomes {
    /// Whether all of the batch was delivered.
    pub(super) fn is_success(&self) -> bool {
        self.finished.iter().all(|attempt| attempt.report.outcome == Outcome::Delivered)
    }
}

impl DeliveryService {
    /// Carries out a batch.
    pub(super) async fn carry_out(&self, batch: &Batch, started_at: Timestamp) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let (mut rows, mut sheet_rows) = (Vec::new(), Vec::new());
        let interval_ms = batch.integration.interval_ms();
        for attempt in &batch.attempts {
            let finish = |report| self.finished(attempt, started_at, report);
            match self.plan(&batch.form, &batch.integration, attempt, started_at) {
                Ok(Outbound::Http(request)) => {
                    let report = self.sender.send(&request).await;
                    let hold_ms = report.hold_ms.max(interval_ms);
                    outcomes.finished.push(finish(SendReport { hold_ms, ..report }));
                }
                Ok(Outbound::Csv(row)) => rows.push((attempt, row)),
                Ok(Outbound::Sheet(row)) => sheet_rows.push((attempt, row)),
                Ok(Outbound::Mail(message)) => {
                    let report = self.send_mail(batch.queue.form, &message, attempt.delivery.settled).await;
                    outcomes.finished.push(finish(report));
                }
                Err(report) => outcomes.finished.push(finish(*report)),
            }
        }
        if !rows.is_empty() {
            let (attempts, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
            let report = self.append(batch, rows, &mut outcomes.file).await;
            let finish = |attempt| self.finished(attempt, started_at, report.clone());
            outcomes.finished.extend(attempts.into_iter().map(finish));
        }
        let reports = self.append_to_sheet(&sheet_rows).await;
        let finish =
            |((attempt, _), report): (&(&BegunAttempt, _), _)| self.finished(attempt, started_at, report);
        outcomes.finished.extend(sheet_rows.iter().zip(reports).map(finish));
        outcomes
    }

    /// Sends a mail; one to a respondent waits if the form has sent as many as it may.
    pub(super) async fn send_mail(&self, form: FormId, message: &MailMessage, settled: u16) -> SendReport {
        let wait = message.is_confirmation.then(|| self.throttle.wait(form, self.clock.now()));
        if let Some(wait_ms) = wait.flatten() {
            return SendReport::new(report::throttled(wait_ms), 0);
        }
        self.mailer.send(message, settled).await
    }

    /// The record of an attempt with its outcome.
    pub(super) fn finished(
        &self,
        attempt: &BegunAttempt,
        started_at: Timestamp,
        report: SendReport,
    ) -> FinishedAttempt {
        FinishedAttempt { delivery: attempt.delivery.clone(), started_at, report, jitter: self.jitter() }
    }

    /// Draws a number from 0.8 to 1.2.
    fn jitter(&self) -> f64 {
        let mut bytes = [0; 2];
        self.random.fill(&mut bytes);
        0.8 + 0.4 * f64::from(u16::from_be_bytes(bytes)) / f64::from(u16::MAX)
    }

    /// Plans an attempt; a report if it cannot be sent.
    pub(super) fn plan(
        &self,
        form: &Form,
        integration: &Integration,
        attempt: &BegunAttempt,
        now: Timestamp,
    ) -> Result<Outbound, Box<SendReport>> {
        let planned = PlannedAttempt {
            event: attempt.delivery.event,
            delivery: attempt.delivery.id(),
            number: attempt.delivery.attempts,
            body: &attempt.body,
            now,
        };
        // Nothing is shared with it that a panic could leave half changed.
        let plan = AssertUnwindSafe(|| integration.plan(planned, form, &self.vault));
        match catch_unwind(plan) {
            Ok(Ok(outbound)) => Ok(outbound),
            // The operator may have started the server with another key.
            Ok(Err(PlanError::Decrypt(error))) => {
                Err(Box::new(report::retryable("secret_unreadable", error.to_string())))
            }
            Ok(Err(PlanError::Damaged)) => Err(Box::new(report::damaged())),
            Err(_panic) => Err(Box::new(report::panicked())),
        }
    }

    /// Appends the rows of a batch to their file.
    async fn append(&self, batch: &Batch, rows: Vec<CsvRow>, end: &mut Option<CsvPosition>) -> SendReport {
        let started = Instant::now();
        let outcome = match self.append_rows(batch, rows).await {
            Ok(position) => {
                *end = Some(position);
                Outcome::Delivered
            }
            Err(error) => report::file_error(&error),
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        SendReport::new(outcome, duration_ms)
    }

    async fn append_rows(&self, batch: &Batch, rows: Vec<CsvRow>) -> io::Result<CsvPosition> {
        let rows = Arc::new(rows);
        let current = batch.file.clone();
        let position = self
            .with_target(batch, &rows, move |target, rows| csv_file::prepare(target, current.as_ref(), rows))
            .await?;
        if batch.file.as_ref() != Some(&position) {
            let put = self.store.put_file_position(batch.queue, position.clone()).await;
            put.map_err(|error| io::Error::other(format!("the position cannot be stored: {error}")))?;
        }
        self.with_target(batch, &rows, move |target, rows| csv_file::append(target, &position, rows)).await
    }

    /// Calls `work` on a blocking thread with the file of `rows`.
    async fn with_target<T: Send + 'static>(
        &self,
        batch: &Batch,
        rows: &Arc<Vec<CsvRow>>,
        work: impl FnOnce(&CsvTarget<'_>, &[CsvRow]) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (exports, form, rows) = (self.settings.exports.clone(), batch.queue.form, Arc::clone(rows));
        let working = spawn_blocking(move || {
            let Some(row) = rows.first() else { return Err(io::ErrorKind::InvalidInput.into()) };
            work(&CsvTarget { exports: &exports, form, settings: &row.file }, &rows)
        });
        working.await.unwrap_or_else(|panicked| Err(io::Error::other(panicked.to_string())))
    }
}
