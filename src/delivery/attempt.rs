//! Carrying out claimed deliveries.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::sleep;
use xxhash_rust::xxh3::xxh3_64;

use super::dispatch::DispatchSlot;
use super::runner::STORE_BACKOFF;
use super::{DeliveryService, report};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{MAX_PACED_WAIT, Outcome, SendReport};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::email::mailbox as mailbox_of;
use crate::domain::integration::outbound::{MailMessage, Outbound};
use crate::domain::integration::plan::PlannedAttempt;
use crate::store::{AttemptEnd, ClaimedBatch, ConfirmationPermit, FinishedAttempt, Result};

/// Ends of attempts that are recorded in one write.
const FINISHED_AT_ONCE: usize = 500;

#[derive(Default)]
pub(super) struct BatchOutcome {
    pub(super) finished: Vec<FinishedAttempt>,
    /// The number of changes that a file shows now.
    pub(super) written: Option<u64>,
    /// Milliseconds before which the receiver takes nothing else.
    pub(super) hold_ms: i64,
}

impl DeliveryService {
    /// Carries out a batch and records how it ended.
    pub(super) async fn carry_out(self: Arc<Self>, batch: ClaimedBatch, slot: DispatchSlot) {
        // Nothing is shared with it that a panic could leave half changed: that ends no more than the attempt.
        let outcome = match AssertUnwindSafe(self.send_batch(&batch)).catch_unwind().await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                let integration = batch.queue.integration;
                tracing::warn!(%integration, %error, "deliveries cannot be loaded");
                sleep(STORE_BACKOFF).await;
                let not_sent = |delivery| FinishedAttempt { delivery, result: AttemptEnd::NotSent };
                let finished = batch.deliveries.iter().cloned().map(not_sent).collect();
                BatchOutcome { finished, ..BatchOutcome::default() }
            }
            Err(_panic) => {
                let finished =
                    self.sent_all(batch.deliveries.clone(), self.clock.now(), &report::panicked().into());
                BatchOutcome { finished, ..BatchOutcome::default() }
            }
        };
        slot.hold(self.clock.now(), outcome.hold_ms);
        self.finish(&batch, self.without_outdated(&batch, outcome).await).await;
    }

    /// Drops the failures if the settings were changed meanwhile: they say nothing about the new ones, with which the
    /// deliveries are attempted at once.
    async fn without_outdated(&self, batch: &ClaimedBatch, mut outcome: BatchOutcome) -> BatchOutcome {
        let found = self.store.find_form(batch.form.reference()).await;
        let form = found.ok().flatten();
        let current = form.as_ref().and_then(|form| form.integration(batch.queue.integration));
        if current.is_none_or(|current| current.kind == batch.integration.kind) {
            return outcome;
        }
        for FinishedAttempt { result, .. } in &mut outcome.finished {
            if matches!(result, AttemptEnd::Sent { report, .. } if report.outcome != Outcome::Delivered) {
                *result = AttemptEnd::NotSent;
            }
        }
        outcome
    }

    async fn send_batch(&self, batch: &ClaimedBatch) -> Result<BatchOutcome> {
        let ClaimedBatch { form, integration, .. } = batch;
        if integration.is_file() {
            return self.write_file(batch).await;
        }
        let started_at = self.clock.now();
        let (mut outcome, mut rows) = (BatchOutcome::default(), Vec::new());
        for (delivery, rendered) in self.render_batch(batch).await? {
            let planned = rendered.and_then(|body| {
                let outbound = self.plan(form, integration, &delivery, &body, started_at)?;
                Ok((outbound, body))
            });
            let result = match planned {
                Err(result) => result,
                Ok((Outbound::Http(request), body)) => {
                    let report = self.sender.send(&request).await;
                    outcome.hold_ms = hold_ms(&report, integration);
                    self.sent(started_at, report, body)
                }
                Ok((Outbound::Mail(message), body)) => {
                    self.send_mail(&delivery, &message, started_at, body).await?
                }
                Ok((Outbound::Sheet(row), body)) => {
                    rows.push((delivery, body, row));
                    continue;
                }
            };
            outcome.finished.push(FinishedAttempt { delivery, result });
        }
        let sheet_rows: Vec<_> = rows.iter().map(|(delivery, _, row)| (delivery, row)).collect();
        let mut reports = self.append_to_sheet(&sheet_rows).await.into_iter();
        for (delivery, body, _) in rows {
            let result = reports.next().map_or(AttemptEnd::NotSent, |report| {
                outcome.hold_ms = outcome.hold_ms.max(hold_ms(&report, integration));
                self.sent(started_at, report, body)
            });
            outcome.finished.push(FinishedAttempt { delivery, result });
        }
        Ok(outcome)
    }

    /// Sends a mail. One to a respondent needs a permit, since anybody may have typed its address.
    async fn send_mail(
        &self,
        delivery: &Delivery,
        message: &MailMessage,
        started_at: Timestamp,
        body: Vec<u8>,
    ) -> Result<AttemptEnd> {
        let mailbox = message.is_confirmation.then(|| xxh3_64(mailbox_of(&message.to).as_bytes()));
        let permit = match mailbox {
            Some(mailbox) => self.store.permit_confirmation(delivery, mailbox, started_at).await?,
            None => ConfirmationPermit::Granted,
        };
        let report = match permit {
            ConfirmationPermit::Granted => self.mailer.send(message).await,
            ConfirmationPermit::AlreadySent => return Ok(AttemptEnd::Skipped),
            ConfirmationPermit::Wait { wait_ms } => {
                return Ok(self.sent(started_at, report::rate_limited(wait_ms), body));
            }
        };
        let to = Some(message.to.clone()).filter(|_| mailbox.is_none());
        let (report, body) = (Box::new(report), Some(body));
        Ok(AttemptEnd::Sent { started_at, report, jitter: self.jitter(), body, to, mailbox })
    }

    /// The ends of attempts that have this report, and sent no body.
    pub(super) fn sent_all(
        &self,
        deliveries: Vec<Delivery>,
        started_at: Timestamp,
        report: &SendReport,
    ) -> Vec<FinishedAttempt> {
        let result = || self.sent(started_at, report.clone(), Vec::new());
        deliveries.into_iter().map(|delivery| FinishedAttempt { delivery, result: result() }).collect()
    }

    /// The result of an attempt that sent `body`.
    pub(super) fn sent(
        &self,
        started_at: Timestamp,
        report: impl Into<SendReport>,
        body: Vec<u8>,
    ) -> AttemptEnd {
        let body = Some(body).filter(|body| !body.is_empty());
        let report = Box::new(report.into());
        AttemptEnd::Sent { started_at, report, jitter: self.jitter(), body, to: None, mailbox: None }
    }

    /// Draws a number from 0.8 to 1.2.
    fn jitter(&self) -> f64 {
        let mut bytes = [0; 2];
        self.random.fill(&mut bytes);
        0.8 + 0.4 * f64::from(u16::from_be_bytes(bytes)) / f64::from(u16::MAX)
    }

    /// Plans an attempt; the result if it cannot be sent.
    pub(super) fn plan(
        &self,
        form: &Form,
        integration: &Integration,
        delivery: &Delivery,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Outbound, AttemptEnd> {
        let planned = PlannedAttempt {
            event: delivery.event,
            delivery: delivery.id(),
            to: integration.address_of(delivery.target.recipient),
            number: delivery.attempts + 1,
            redelivery: delivery.earlier_attempts,
            body,
            now,
        };
        // Nothing is shared with it that a panic could leave half changed.
        let plan = AssertUnwindSafe(|| integration.plan(planned, form, &self.vault));
        let outcome = match catch_unwind(plan) {
            Ok(Ok(outbound)) => return Ok(outbound),
            Ok(Err(error)) => report::of_plan_error(&error),
            Err(_panic) => Some(report::panicked()),
        };
        Err(outcome.map_or(AttemptEnd::Canceled, |outcome| self.sent(now, outcome, body.to_vec())))
    }

    /// Records the outcome of a batch, in short writes, since submissions wait for each.
    async fn finish(&self, batch: &ClaimedBatch, BatchOutcome { mut finished, written, .. }: BatchOutcome) {
        while finished.len() > FINISHED_AT_ONCE {
            let rest = finished.split_off(FINISHED_AT_ONCE);
            self.record(batch, finished, None).await;
            finished = rest;
        }
        self.record(batch, finished, written).await;
    }

    /// Records the ends of attempts. Tries again while the store is not available: otherwise the deliveries would be sent
    /// again. After any other failure they stay claimed until the next start.
    async fn record(&self, batch: &ClaimedBatch, finished: Vec<FinishedAttempt>, written: Option<u64>) {
        let integration = batch.queue.integration;
        loop {
            let now = self.clock.now();
            match self.store.finish(batch.queue, finished.clone(), written, now).await {
                Ok(health) => {
                    finished.iter().for_each(|attempt| self.report(&batch.integration, attempt, now));
                    if let Some(reason) = health.paused {
                        tracing::warn!(form = %batch.form.id, %integration, reason, "the integration is paused");
                    }
                    return;
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(%integration, %error, "the outcomes of deliveries cannot be recorded");
                    sleep(STORE_BACKOFF).await;
                }
                Err(error) => {
                    tracing::error!(%integration, %error, "the outcomes of deliveries cannot be recorded; they are sent again after the next start");
                    return;
                }
            }
        }
    }

    /// Counts and logs an attempt, and whether the delivery is dead: neither what was sent nor the answer, and of the URL the
    /// host.
    fn report(
        &self,
        integration: &Integration,
        FinishedAttempt { delivery, result }: &FinishedAttempt,
        now: Timestamp,
    ) {
        let kind = integration.type_name();
        let count = |result| self.metrics.deliveries.with_label_values(&[kind, result]).inc();
        let (report, jitter) = match result {
            AttemptEnd::Sent { report, jitter, .. } => (report, *jitter),
            AttemptEnd::Skipped => return count("skipped"),
            AttemptEnd::Canceled => return count("canceled"),
            AttemptEnd::NotSent => return,
        };
        let (id, form, host) = (delivery.id(), delivery.form, integration.destination());
        let (name, number) = (&integration.name, delivery.attempts + 1);
        let error = report.outcome.error().map_or_else(String::new, |error| error.code.to_string());
        let result = report.outcome.result();
        let duration = report.duration_ms;
        self.metrics.delivery_duration.observe(duration as f64 / 1_000.0);
        tracing::debug!(delivery = %id, %form, integration = name, host, number, %result, error, duration, "attempt");
        let schedule = integration.retry_schedule(self.settings.retry_schedule.as_deref());
        let status = delivery.finish_attempt(report, schedule, jitter, now).status;
        if status == DeliveryStatus::Dead {
            tracing::warn!(delivery = %id, %form, integration = name, host, number, error, "a delivery is dead");
        }
        count(match status {
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Dead => "dead",
            _ => "retried",
        });
    }
}

/// Returns the milliseconds before which the receiver takes nothing else.
fn hold_ms(report: &SendReport, integration: &Integration) -> i64 {
    let asked = match &report.outcome {
        Outcome::Paced { wait_ms, .. } => *wait_ms,
        _ => 0,
    };
    asked.min(MAX_PACED_WAIT).max(report.hold_ms).max(integration.pace().interval_ms)
}
