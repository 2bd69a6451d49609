//! The steps of the loop that use the store.

use std::sync::Arc;

use tokio::time::sleep;

use super::DeliveryService;
use super::attempt::Outcomes;
use super::runner::STORE_BACKOFF;
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::store::{BegunAttempt, FinishedAttempt, NewAttempt, QueueBatch, QueueId, QueueState, Result};

/// How long a begun attempt belongs to this process: well over the longest send.
const LEASE_MILLIS: i64 = 60_000;

/// The result of loading a queue.
pub(super) enum Loaded {
    Batch(Box<LoadedBatch>),
    /// Nothing to do until this time, or until the queue is woken.
    Nothing(Option<Timestamp>),
}

/// Due deliveries, with what to do about them.
pub(super) struct LoadedBatch {
    pub(super) form: Arc<Form>,
    pub(super) integration: Arc<Integration>,
    pub(super) state: QueueState,
    pub(super) attempts: Vec<NewAttempt>,
}

impl DeliveryService {
    /// Lists the queues with deliveries that wait. Tries until it succeeds.
    pub(super) async fn list_queues(self: Arc<Self>) -> Vec<(QueueId, Timestamp)> {
        loop {
            match self.store.list_queues().await {
                Ok(queues) => return queues,
                Err(error) => {
                    tracing::warn!(%error, "the deliveries that wait cannot be listed");
                    sleep(STORE_BACKOFF).await;
                }
            }
        }
    }

    /// Loads at most `limit` due deliveries of a queue and decides about them.
    pub(super) async fn load(self: Arc<Self>, queue: QueueId, limit: usize) -> Result<Loaded> {
        let now = self.clock.now();
        let Some(batch) = self.store.load_queue(queue, now, limit).await? else {
            self.store.drop_queue(queue);
            return Ok(Loaded::Nothing(None));
        };
        let QueueBatch { form, state, due, next_due } = batch;
        let Some(integration) = form.integration(queue.integration).cloned() else {
            return Ok(Loaded::Nothing(None));
        };
        if due.is_empty() {
            return Ok(Loaded::Nothing(next_due));
        }
        let attempts = self.decide(&form, &integration, due).await?;
        if attempts.is_empty() {
            // The form was moved to the trash since. It may be restored before the queue is loaded again.
            return Ok(Loaded::Nothing(Some(self.after_backoff())));
        }
        let batch = LoadedBatch { form, integration: Arc::new(integration), state, attempts };
        Ok(Loaded::Batch(Box::new(batch)))
    }

    /// Returns when to try again after a failure of the store.
    pub(super) fn after_backoff(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.now().millis() + STORE_BACKOFF.as_millis() as i64)
    }

    /// Counts the attempts that are about to be made.
    pub(super) async fn begin(
        self: Arc<Self>,
        queue: QueueId,
        attempts: Vec<NewAttempt>,
    ) -> Result<Vec<BegunAttempt>> {
        let now = self.clock.now();
        let lease_until = Timestamp::from_millis(now.millis() + LEASE_MILLIS);
        self.store.begin_attempts(queue, attempts, now, lease_until).await
    }

    /// Records outcomes, and returns the state of the queue. Tries until it succeeds: otherwise the deliveries would be
    /// repeated when their leases end.
    pub(super) async fn finish(
        self: Arc<Self>,
        queue: QueueId,
        integration: Arc<Integration>,
        Outcomes { finished, file }: Outcomes,
    ) -> QueueState {
        loop {
            let now = self.clock.now();
            match self.store.finish_attempts(queue, finished.clone(), file.clone(), now).await {
                Ok(state) => {
                    finished.iter().for_each(|attempt| self.log(&integration, attempt, now));
                    return state;
                }
                Err(error) => {
                    let integration = queue.integration;
                    tracing::warn!(%integration, %error, "the outcomes of deliveries cannot be recorded");
                    sleep(STORE_BACKOFF).await;
                }
            }
        }
    }

    /// Logs an attempt, and whether the delivery is dead: neither what was sent nor the answer, and of the URL the host.
    fn log(&self, integration: &Integration, attempt: &FinishedAttempt, now: Timestamp) {
        let FinishedAttempt { delivery, report, jitter, .. } = attempt;
        let (id, form, host) = (delivery.id(), delivery.form, integration.destination());
        let (name, number) = (&integration.name, delivery.attempts);
        let error = report.outcome.error().map_or_else(String::new, |error| error.code.to_string());
        let result = report.outcome.result();
        let duration = report.duration_ms;
        tracing::debug!(delivery = %id, %form, integration = name, host, number, %result, error, duration, "attempt");
        let schedule = integration.retry_schedule(self.settings.retry_schedule.as_deref());
        if delivery.finish_attempt(report, schedule, *jitter, now).status == DeliveryStatus::Dead {
            tracing::warn!(delivery = %id, %form, integration = name, host, number, error, "a delivery is dead");
        }
    }
}
