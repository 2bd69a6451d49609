//! Attempts of deliveries: counted before they are made, and finished with their outcome.

use std::collections::VecDeque;

use super::delivery_rows::{DeliveryRow, put_attempt};
use super::engine::tx::Tx;
use super::outbox;
use super::queue_state::{Revival, StoredQueue};
use super::queue_writer::{QueueContext, QueueWriter};
use super::{BATCH_ROWS, delivery_layout as keys};
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::integration::csv_file::CsvPosition;
use crate::id::EventId;
use crate::store::{BegunAttempt, FinishedAttempt, NewAttempt, QueueId, QueueState, Result};

/// Records decisions about due deliveries.
pub(super) fn begin(
    tx: &mut Tx<'_>,
    context: &QueueContext,
    queue: QueueId,
    attempts: Vec<NewAttempt>,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Vec<BegunAttempt>> {
    let Some(mut writer) = QueueWriter::open(tx, context, queue, now)? else { return Ok(Vec::new()) };
    let ahead = usize::try_from(writer.state.ahead).map_or(BATCH_ROWS, |ahead| ahead.min(BATCH_ROWS));
    let limit = attempts.len() + ahead;
    let waiting = outbox::read_waiting(tx, keys::queue_key(queue), writer.state.position, limit)?;
    let mut entries = VecDeque::from(waiting.entries);
    let mut begun = Vec::new();
    for NewAttempt { delivery, decision } in attempts {
        if writer.form.deleted_at.is_some() && !delivery.event_type.is_deletion() {
            continue;
        }
        let old = DeliveryRow::read(tx, delivery.form, delivery.event, delivery.integration)?;
        let row = match &old {
            Some(row) => Some(row.clone()),
            None => writer.take_entry(tx, &mut entries, delivery.event)?,
        };
        let Some(row) =
            row.filter(|row| row.delivery == delivery && delivery.status == DeliveryStatus::Pending)
        else {
            continue;
        };
        begun.extend(writer.decide(tx, &row, old.as_ref(), decision, lease_until)?);
    }
    writer.close(tx)?;
    Ok(begun)
}

/// Records outcomes of attempts. Returns the new state, and whether it has been paused.
pub(super) fn finish(
    tx: &mut Tx<'_>,
    context: &QueueContext,
    queue: QueueId,
    finished: Vec<FinishedAttempt>,
    file: Option<CsvPosition>,
    now: Timestamp,
) -> Result<(QueueState, bool)> {
    let Some(mut writer) = QueueWriter::open(tx, context, queue, now)? else {
        return Ok((QueueState::default(), false));
    };
    for FinishedAttempt { delivery, started_at, report, jitter } in finished {
        let row = DeliveryRow::read(tx, delivery.form, delivery.event, delivery.integration)?;
        match row {
            Some(row) if row.delivery == delivery => {
                writer.apply(tx, (&row, Some(&row)), &report, jitter, started_at)?;
            }
            Some(_) => put_attempt(tx, &delivery, &delivery.log_attempt(started_at, &report))?,
            // Pruned, or erased with its form.
            None => {}
        }
    }
    writer.state.file = file.or(writer.state.file.take());
    writer.close(tx)
}

/// Applies that leases of attempts have ended without an outcome, and moves the position over what needs no attempt.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    context: &QueueContext,
    queue: QueueId,
    expired: Vec<EventId>,
    limit: usize,
    now: Timestamp,
) -> Result<()> {
    let Some(mut writer) = QueueWriter::open(tx, context, queue, now)? else { return Ok(()) };
    for event in expired {
        let Some(row) = DeliveryRow::read(tx, queue.form, event, queue.integration)? else { continue };
        let delivery = &row.delivery;
        let is_expired = delivery.next_attempt_at.is_some_and(|lease| lease <= now);
        if delivery.status == DeliveryStatus::InFlight && is_expired {
            let started_at = row.begun_at.unwrap_or(now);
            put_attempt(tx, delivery, &delivery.log_attempt(started_at, &interruption(started_at, now)))?;
            let expired = row.with(delivery.expire_attempt(&writer.schedule, now));
            expired.replace(tx, &row)?;
        }
    }
    let waiting = outbox::read_waiting(tx, keys::queue_key(queue), writer.state.position, limit)?;
    let mut entries = VecDeque::from(waiting.entries);
    writer.pass_rows(tx, &mut entries)?;
    if entries.is_empty() {
        writer.state.position = writer.state.position.max(waiting.read_to);
    }
    writer.close(tx).map(drop)
}

/// Ends a pause by the server. Returns whether deliveries are to be revived.
pub(super) fn resume(
    tx: &mut Tx<'_>,
    context: &QueueContext,
    queue: QueueId,
    now: Timestamp,
) -> Result<bool> {
    let Some(mut writer) = QueueWriter::open(tx, context, queue, now)? else { return Ok(false) };
    let state = &mut writer.state;
    if let Some(since) = state.health.failing_since {
        let since = state.revival.map_or(since, |earlier| earlier.since.min(since));
        state.revival = Some(Revival { since, until: now });
    }
    state.health = state.health.resumed();
    state.paced_until = None;
    let is_reviving = state.revival.is_some();
    writer.close(tx)?;
    Ok(is_reviving)
}

/// Stores the position of a CSV file.
pub(super) fn put_file(tx: &mut Tx<'_>, queue: QueueId, file: CsvPosition) -> Result<()> {
    // The row of an integration that no longer exists may be gone, and stays so.
    if tx.get(&keys::queue(queue.form, queue.integration))?.is_some() {
        let state = StoredQueue::read(tx, queue.form, queue.integration)?;
        StoredQueue { file: Some(file), ..state }.put(tx, queue.form, queue.integration)?;
    }
    Ok(())
}

fn interruption(started_at: Timestamp, now: Timestamp) -> SendReport {
    let duration_ms = u64::try_from(now.millis() - started_at.millis()).unwrap_or(0);
    SendReport::new(Outcome::Interrupted, duration_ms)
}
