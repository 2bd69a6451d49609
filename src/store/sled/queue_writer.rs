//! A queue within a transaction that changes it: its position in the outbox, its deliveries, and its state.

use std::collections::VecDeque;
use std::sync::Arc;

use super::decoded_cache::DecodedCache;
use super::delivery_rows::{DeliveryRow, put_attempt};
use super::engine::tx::Tx;
use super::forms::find_cached;
use super::outbox::{self, OutboxEntry, OutboxRow};
use super::queue_state::StoredQueue;
use super::{delivery_layout as keys, events, locate};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{MAX_PACED_WAIT, Outcome, SendReport};
use crate::domain::delivery::lifecycle::EventHead;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::event::{EventType, Subject};
use crate::id::{EventId, IntegrationId, Random};
use crate::store::{AttemptDecision, BegunAttempt, QueueId, QueueState, Result};

/// What the writer thread needs of the store to change a queue.
#[derive(Clone)]
pub(super) struct QueueContext {
    pub(super) forms: Arc<DecodedCache<Form>>,
    pub(super) random: Arc<dyn Random>,
    pub(super) retry_schedule: Option<Arc<[i64]>>,
}

/// A queue within a transaction that changes it.
pub(super) struct QueueWriter<'a> {
    context: &'a QueueContext,
    queue: QueueId,
    pub(super) form: Arc<Form>,
    /// Waits between attempts in milliseconds.
    pub(super) schedule: Vec<i64>,
    before: StoredQueue,
    pub(super) state: StoredQueue,
    now: Timestamp,
}

impl<'a> QueueWriter<'a> {
    /// Opens a queue; `None` if its form or its integration no longer exists.
    pub(super) fn open(
        tx: &Tx<'_>,
        context: &'a QueueContext,
        queue: QueueId,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let Some(form) = find_cached(tx, &context.forms, queue.workspace, queue.form)? else {
            return Ok(None);
        };
        let Some(integration) = form.integration(queue.integration) else { return Ok(None) };
        let schedule = integration.retry_schedule(context.retry_schedule.as_deref()).to_vec();
        let before = StoredQueue::read(tx, queue.form, queue.integration)?;
        Ok(Some(Self { context, queue, form, schedule, state: before.clone(), before, now }))
    }

    /// Takes the entry of `event` from the outbox, if it is the next one; entries are decided in order.
    pub(super) fn take_entry(
        &mut self,
        tx: &Tx<'_>,
        entries: &mut VecDeque<OutboxEntry>,
        event: EventId,
    ) -> Result<Option<DeliveryRow>> {
        self.pass_rows(tx, entries)?;
        let is_next = |entry: &&OutboxEntry| EventId::of_completed(entry.submission) == event;
        let Some(entry) = entries.front().filter(is_next).copied() else { return Ok(None) };
        entries.pop_front();
        self.state.position = entry.sequence;
        let head = EventHead::of_completed(self.queue.form, entry.submission);
        Ok(Some(DeliveryRow::new(Delivery::new(head, self.queue.integration), entry.sequence)))
    }

    /// Moves the position over the next entries that have rows of their own already.
    pub(super) fn pass_rows(&mut self, tx: &Tx<'_>, entries: &mut VecDeque<OutboxEntry>) -> Result<()> {
        while let Some(entry) = entries.front() {
            let event = EventId::of_completed(entry.submission);
            if tx.get(&keys::delivery(self.queue.form, event, self.queue.integration))?.is_none() {
                break;
            }
            self.state.position = entry.sequence;
            self.state.ahead = self.state.ahead.saturating_sub(1);
            entries.pop_front();
        }
        Ok(())
    }

    /// Writes the state of a due delivery after `decision`; `old` is its row, if it has one.
    pub(super) fn decide(
        &mut self,
        tx: &mut Tx<'_>,
        row: &DeliveryRow,
        old: Option<&DeliveryRow>,
        decision: AttemptDecision,
        lease_until: Timestamp,
    ) -> Result<Option<BegunAttempt>> {
        let delivery = &row.delivery;
        let attempted =
            || DeliveryRow { begun_at: Some(self.now), ..row.with(delivery.begin_attempt(lease_until)) };
        let ended = match decision {
            // Erasing it canceled the deliveries with rows, and has not known of one without: to send it would also keep its
            // answers in the body.
            AttemptDecision::Send(_) | AttemptDecision::Fail(_)
                if old.is_none() && is_erased(tx, delivery)? =>
            {
                delivery.canceled(self.now)
            }
            AttemptDecision::Send(body) => {
                let row = attempted();
                self.write(tx, &row, old)?;
                if tx.get(&row.body_key())?.as_ref() != Some(&body) {
                    tx.put(row.body_key(), body.clone());
                }
                return Ok(Some(BegunAttempt { delivery: row.delivery, body }));
            }
            AttemptDecision::Fail(report) => {
                let row = attempted();
                self.apply(tx, (&row, old), &report, 1.0, self.now)?;
                return Ok(None);
            }
            AttemptDecision::Skip => delivery.skipped(self.now),
            AttemptDecision::Pause if is_in_trash(tx, delivery)? => delivery.paused(),
            AttemptDecision::Cancel if is_erased(tx, delivery)? => delivery.canceled(self.now),
            // Since it was loaded, what it is about was moved to the trash or restored: it is decided again.
            AttemptDecision::Pause | AttemptDecision::Cancel => delivery.clone(),
        };
        if ended.status.is_final() {
            tx.delete(row.body_key());
        }
        self.write(tx, &row.with(ended), old)?;
        Ok(None)
    }

    /// Applies the outcome of the attempt in flight of `row`; `old` is the stored row, if there is one.
    pub(super) fn apply(
        &mut self,
        tx: &mut Tx<'_>,
        (row, old): (&DeliveryRow, Option<&DeliveryRow>),
        report: &SendReport,
        jitter: f64,
        started_at: Timestamp,
    ) -> Result<()> {
        put_attempt(tx, &row.delivery, &row.delivery.log_attempt(started_at, report))?;
        let finished = row.with(row.delivery.finish_attempt(report, &self.schedule, jitter, self.now));
        let status = finished.delivery.status;
        if status.is_final() && status != DeliveryStatus::Dead {
            tx.delete(row.body_key());
        }
        self.write(tx, &finished, old)?;
        self.state.health = self.state.health.after(&finished.delivery, report, self.now);
        if matches!(report.outcome, Outcome::Paced { .. }) && status == DeliveryStatus::Pending {
            self.state.paced_until = self.state.paced_until.max(finished.delivery.next_attempt_at);
        }
        if report.hold_ms > 0 {
            let hold_ms = report.hold_ms.min(MAX_PACED_WAIT);
            let until = Timestamp::from_millis(self.now.millis().saturating_add(hold_ms));
            self.state.paced_until = self.state.paced_until.max(Some(until));
        }
        Ok(())
    }

    fn write(&self, tx: &mut Tx<'_>, row: &DeliveryRow, old: Option<&DeliveryRow>) -> Result<()> {
        match old {
            Some(old) => row.replace(tx, old),
            None => row.insert(tx, self.queue.workspace),
        }
    }

    /// Writes the state if it has changed, and deletes outbox rows that are not needed any more. Returns it, and whether
    /// the server has paused the integration.
    pub(super) fn close(self, tx: &mut Tx<'_>) -> Result<(QueueState, bool)> {
        let is_paused = self.before.health.paused.is_none() && self.state.health.paused.is_some();
        if self.state != self.before {
            self.state.put(tx, self.queue.form, self.queue.integration)?;
        }
        if is_paused {
            self.record_pause(tx)?;
        }
        let (from, to) = (self.before.position, self.state.position);
        if from < to {
            delete_passed(tx, &self.form, self.queue.integration, from, to)?;
        }
        Ok((self.state.into_state(), is_paused))
    }

    fn record_pause(&self, tx: &mut Tx<'_>) -> Result<()> {
        let id = self.queue.integration;
        let Some(integration) = self.form.integration(id) else { return Ok(()) };
        let reason = self.state.health.paused.clone().unwrap_or_default();
        let subject = Subject::Integration { id, name: integration.name.clone(), reason };
        let event = (EventType::IntegrationDisabled, subject);
        events::record(tx, &*self.context.random, &self.form, event, Some(id), self.now)
    }
}

fn is_in_trash(tx: &Tx<'_>, delivery: &Delivery) -> Result<bool> {
    match delivery.submission {
        Some(submission) => events::is_in_trash(tx, delivery.form, submission),
        None => Ok(false),
    }
}

/// Whether what the delivery is about was erased.
fn is_erased(tx: &Tx<'_>, delivery: &Delivery) -> Result<bool> {
    if delivery.event_type != EventType::SubmissionCompleted {
        return Ok(tx.get(&keys::event(delivery.form, delivery.event))?.is_none());
    }
    let is_live = locate::read_live(tx, delivery.form, delivery.event.completed_submission())?.is_some();
    Ok(!is_live && !is_in_trash(tx, delivery)?)
}

/// Deletes outbox rows that name `integration` and end within the events after `from` and up to `to`, if all their other
/// integrations that still exist have passed them.
fn delete_passed(tx: &mut Tx<'_>, form: &Form, integration: IntegrationId, from: u64, to: u64) -> Result<()> {
    let mut positions = vec![(integration, to)];
    let mut next = from + 1;
    while next <= to {
        let Some(row) = outbox::row_from(tx, form.id, next)? else { break };
        next = row.last() + 1;
        if row.last() <= to && row.names(integration) && is_passed(tx, form, &row, &mut positions)? {
            tx.delete(row.key());
        }
    }
    Ok(())
}

/// Whether all integrations of `row` that still exist have taken over all its events. `positions` has those known already.
pub(super) fn is_passed(
    tx: &Tx<'_>,
    form: &Form,
    row: &OutboxRow,
    positions: &mut Vec<(IntegrationId, u64)>,
) -> Result<bool> {
    for id in row.integrations.iter().filter(|id| form.integration(**id).is_some()) {
        let known = positions.iter().find(|(known, _)| known == id).map(|(_, position)| *position);
        let position = match known {
            Some(position) => position,
            None => {
                let position = StoredQueue::read(tx, form.id, *id)?.position;
                positions.push((*id, position));
                position
            }
        };
        if position < row.last() {
            return Ok(false);
        }
    }
    Ok(true)
}
