//! Claiming what is due in queues, and recording how attempts ended.

use std::sync::{Arc, Mutex, PoisonError};

use super::delivery_layout::{self as keys, IndexPosition};
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, KeyRange, Tx};
use super::forms::find_cached;
use super::queue::QueueCounts;
use super::row_source::RowSource;
use super::{Context, SledStore, confirmations, delivery_rows, events, layout};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::integration::event::{EventType, Subject};
use crate::store::queue::{DUE_CLASSES, QueueClass, StoredQueue};
use crate::store::{
    AttemptEnd, Capacity, ClaimedBatch, FinishedAttempt, Owner, QueueId, Result, Room, StoreError,
};

/// Wait before a queue is looked at again that cannot be decoded, in milliseconds.
const RETRY_MILLIS: i64 = 60_000;

impl SledStore {
    /// Asks how many deliveries of a queue may be claimed; `None` if it does not exist any more.
    pub(super) fn room(&self, queue: QueueId, capacity: &mut Capacity<'_>) -> Result<Option<Room>> {
        let Some(form) = self.form(queue.workspace.form(queue.form))? else { return Ok(None) };
        let Some(integration) = form.integration(queue.integration) else { return Ok(None) };
        let state = StoredQueue::read(&self.reader, (queue.form, queue.integration))?;
        Ok(Some(capacity(queue, integration, &state.health)))
    }

    /// Claims deliveries of some queues, on the writer thread, where nothing else changes them.
    pub(super) async fn claim_some(
        &self,
        owner: Owner,
        now: Timestamp,
        queues: &[(QueueId, usize)],
    ) -> Result<Vec<ClaimedBatch>> {
        let (context, queues) = (Arc::clone(&self.context), queues.to_vec());
        let claimed = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&claimed);
        let work = move |tx: &mut Tx<'_>| {
            for (queue, limit) in queues {
                let (batch, next_due) = match claim_queue(tx, &context, queue, now, limit) {
                    Ok(Some(claimed)) => claimed,
                    Ok(None) => continue,
                    // A later version may have written the row; the other queues go on.
                    Err(error @ StoreError::Undecodable(_)) => {
                        tracing::warn!(integration = %queue.integration, %error, "deliveries cannot be claimed");
                        context.claims.set_due(queue, Timestamp::from_millis(now.millis() + RETRY_MILLIS));
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if let Some(next_due) = next_due {
                    context.claims.set_due(queue, next_due);
                }
                if !batch.deliveries.is_empty() || batch.changes.is_some() {
                    context.claims.claim(owner, queue, &batch.deliveries);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
                }
            }
            Ok(())
        };
        let outcome = self.engine.write_as(WriteKind::Reclaim, work).await;
        let claimed = std::mem::take(&mut *claimed.lock().unwrap_or_else(PoisonError::into_inner));
        if outcome.is_err() {
            claimed.iter().for_each(|batch| self.context.claims.end(batch.queue, &batch.deliveries));
        }
        outcome.map(|()| claimed)
    }

    /// Returns when the first delivery of a queue is due, or may be; `None` if none waits.
    pub(super) fn first_due(&self, queue: QueueId) -> Result<Option<Timestamp>> {
        let key = (queue.form, queue.integration);
        let mut first = None;
        for class in DUE_CLASSES {
            let due = first_in(&self.reader, keys::index(key, class))?;
            first = first.into_iter().chain(due).min();
        }
        let changes = QueueCounts::read(&self.reader, key)?.changes;
        let is_outdated = changes != StoredQueue::read(&self.reader, key)?.written;
        Ok(first.or(is_outdated.then_some(Timestamp::from_millis(0))))
    }
}

/// Returns the time of the first entry in a range of the index.
fn first_in(rows: &impl RowSource, range: KeyRange) -> Result<Option<Timestamp>> {
    let first = rows.scan(range, Direction::Ascending, 1)?.pop();
    first.map(|(entry, _)| Ok(IndexPosition::decode(&entry)?.at)).transpose()
}

/// Finds at most `limit` deliveries of a queue to claim that are due at `now`, and when to look at the queue again; `None` if
/// the queue does not exist any more.
fn claim_queue(
    tx: &Tx<'_>,
    context: &Context,
    queue: QueueId,
    now: Timestamp,
    limit: usize,
) -> Result<Option<(ClaimedBatch, Option<Timestamp>)>> {
    let Some(form) = find_cached(tx, context, queue.workspace.form(queue.form))? else { return Ok(None) };
    let Some(integration) = form.integration(queue.integration) else { return Ok(None) };
    let key = (queue.form, queue.integration);
    let state = StoredQueue::read(tx, key)?;
    let is_paused = state.health.paused.is_some();
    let is_active = integration.enabled && !is_paused;
    // What was erased leaves the file of a disabled integration, too.
    let changes = match integration.is_file() && !is_paused && form.deleted_at.is_none() {
        true => Some(QueueCounts::read(tx, key)?.changes).filter(|changes| *changes != state.written),
        false => None,
    };
    let classes: &[QueueClass] = match (is_active, form.deleted_at) {
        (false, _) => &[],
        (true, Some(_)) => &[QueueClass::Deletion],
        (true, None) => &DUE_CLASSES,
    };
    let (mut deliveries, mut next_due) = (Vec::new(), None);
    for class in classes {
        // In order, those of a time ahead of the clock too: it may have been set back.
        let range = match integration.is_in_order() {
            true => keys::index(key, *class),
            false => keys::index_until(key, *class, now),
        };
        let mut next = claim_range(tx, context, queue, range, (now, limit), &mut deliveries)?;
        if next.is_none() && !integration.is_in_order() {
            let after = Timestamp::from_millis(now.millis() + 1);
            next = first_in(tx, keys::index_from(key, *class, after))?;
        }
        next_due = next.into_iter().chain(next_due).min();
    }
    let integration = Arc::new(integration.clone());
    let batch = ClaimedBatch { queue, form: Arc::clone(&form), integration, deliveries, changes };
    Ok(Some((batch, next_due)))
}

/// Finds deliveries of a range of the index until `claimed` has `limit`. Returns when the next one of it is due.
fn claim_range(
    tx: &Tx<'_>,
    context: &Context,
    queue: QueueId,
    range: KeyRange,
    (now, limit): (Timestamp, usize),
    claimed: &mut Vec<Delivery>,
) -> Result<Option<Timestamp>> {
    // Those that are claimed already are skipped.
    let rows = limit + context.claims.count(queue) + 1;
    for (entry, _) in tx.scan(range, Direction::Ascending, rows)? {
        let IndexPosition { event, target, .. } = IndexPosition::decode(&entry)?;
        let Some(delivery) = delivery_rows::read(tx, queue.workspace, event, target)? else { continue };
        if context.claims.is_claimed(queue, &delivery) {
            continue;
        }
        match delivery.due_at(now) {
            Some(due) if due > now => return Ok(Some(due)),
            _ if claimed.len() == limit => return Ok(Some(now)),
            _ => claimed.push(delivery),
        }
    }
    Ok(None)
}

/// Records the ends of claimed attempts. Returns the health of the queue, and the queues to look at.
pub(super) fn finish(
    tx: &mut Tx<'_>,
    context: &Context,
    schedule: Option<&[i64]>,
    queue: QueueId,
    finished: Vec<FinishedAttempt>,
    written: Option<u64>,
    now: Timestamp,
) -> Result<(Health, Vec<QueueId>)> {
    let form = find_cached(tx, context, queue.workspace.form(queue.form))?;
    let found = form.as_deref().and_then(|form| Some((form, form.integration(queue.integration)?)));
    let Some((form, integration)) = found else { return Ok((Health::default(), Vec::new())) };
    let schedule = integration.retry_schedule(schedule);
    let key = (queue.form, queue.integration);
    let before = StoredQueue::read(tx, key)?;
    let mut state = StoredQueue { written: written.unwrap_or(before.written), ..before.clone() };
    for attempt in finished {
        let FinishedAttempt { delivery, result } = &attempt;
        let current = delivery_rows::read(tx, queue.workspace, delivery.event, delivery.target)?;
        let Some(current) = current.filter(|current| attempt.is_of(current)) else { continue };
        let is_in_trash =
            *result == AttemptEnd::NotSent && events::is_in_trash(tx, current.form, current.submission)?;
        let Some(new) = result.apply(&current, schedule, is_in_trash, now) else { continue };
        if let AttemptEnd::Sent { started_at, report, body, mailbox, .. } = result {
            tx.put(
                keys::attempt(&current, current.attempts + 1),
                layout::to_json(&current.log_attempt(*started_at, report))?,
            );
            let is_kept = new.status == DeliveryStatus::Delivered || tx.get(&keys::body(&current))?.is_some();
            if let Some(body) = body.as_ref().filter(|_| !is_kept) {
                tx.put(keys::body(&current), body.clone());
            }
            if let Some(mailbox) = mailbox {
                confirmations::record_attempt(tx, &new, *mailbox, now)?;
            }
            state.health = state.health.after(&new, report, now);
        }
        delivery_rows::replace(tx, queue.workspace, &current, &new)?;
    }
    if state != before {
        state.put(tx, key)?;
    }
    let mut woken = vec![queue];
    if before.health.paused.is_none()
        && let Some(reason) = state.health.paused.clone()
    {
        let id = queue.integration;
        let subject = Subject::Integration { id, name: integration.name.clone(), reason };
        events::record(tx, context, form, (EventType::IntegrationDisabled, subject), Some(id), now)?;
        woken = form.integrations.iter().map(|one| QueueId { integration: one.id, ..queue }).collect();
    }
    Ok((state.health, woken))
}
