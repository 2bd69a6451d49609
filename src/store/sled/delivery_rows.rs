//! The rows of one delivery: itself, its entry in the index of its queue, its body and its attempts.

use super::delivery_layout as keys;
use super::engine::tx::Tx;
use super::queue::{QueueCounts, QueueKey};
use super::row_source::RowSource;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, DeliveryTarget, EventId, WorkspaceId};
use crate::store::Result;
use crate::store::queue::{QueueClass, decode_delivery, encode_delivery};

/// Decodes a delivery. What its key or its event shows is not stored.
pub(super) fn decode(key: &[u8], body: &[u8]) -> Result<Delivery> {
    let (event, target) = keys::listed_delivery(key)?;
    decode_delivery(event, target, body)
}

pub(super) fn read(
    rows: &impl RowSource,
    workspace: WorkspaceId,
    event: EventId,
    target: DeliveryTarget,
) -> Result<Option<Delivery>> {
    let key = keys::delivery(workspace, event, target);
    rows.read(&key, |body| decode(&key, body))
}

/// Finds a delivery of `workspace` by its id.
pub(super) fn find(
    rows: &impl RowSource,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<Option<Delivery>> {
    for (key, body) in rows.scan_all(keys::deliveries_with(workspace, id))? {
        let (event, target) = keys::listed_delivery(&key)?;
        if DeliveryId::of(event, target) == id {
            return decode(&key, &body).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn of_event(
    rows: &impl RowSource,
    workspace: WorkspaceId,
    event: EventId,
) -> Result<Vec<Delivery>> {
    let found = rows.scan_all(keys::deliveries_of(workspace, event))?;
    found.iter().map(|(key, body)| decode(key, body)).collect()
}

pub(super) fn queue_of(delivery: &Delivery) -> QueueKey {
    (delivery.form, delivery.target.integration)
}

/// Writes a new delivery, with its entry in the index.
pub(super) fn insert(tx: &mut Tx<'_>, workspace: WorkspaceId, new: &Delivery) -> Result<()> {
    // The ids of events are never assigned twice, and the index has the same rows.
    tx.put_new(index_entry(new), index_value(new));
    tx.put_new(keys::delivery(workspace, new.event, new.target), encode_delivery(new)?);
    count(tx, None, Some(new))
}

/// Writes a delivery in place of `old`, another state of it.
pub(super) fn replace(tx: &mut Tx<'_>, workspace: WorkspaceId, old: &Delivery, new: &Delivery) -> Result<()> {
    let (replaced, entry) = (index_entry(old), index_entry(new));
    if replaced != entry {
        tx.delete(replaced);
    }
    tx.put(entry, index_value(new));
    tx.put(keys::delivery(workspace, new.event, new.target), encode_delivery(new)?);
    if new.status.is_final() && new.status != DeliveryStatus::Dead {
        tx.delete(keys::body(new));
    }
    count(tx, Some(old), Some(new))
}

/// Deletes a delivery and all that belongs to it, except its attempts.
pub(super) fn delete(tx: &mut Tx<'_>, workspace: WorkspaceId, old: &Delivery) -> Result<()> {
    tx.delete(index_entry(old));
    tx.delete(keys::body(old));
    tx.delete(keys::delivery(workspace, old.event, old.target));
    count(tx, Some(old), None)
}

/// Applies a change to the counters of the queue, which an integration that was deleted does not have.
fn count(tx: &mut Tx<'_>, old: Option<&Delivery>, new: Option<&Delivery>) -> Result<()> {
    let Some(queue) = new.or(old).map(queue_of) else { return Ok(()) };
    let mut counts = QueueCounts::read(tx, queue)?;
    let before = counts;
    let finished_at = new.and_then(|new| new.finished_at);
    counts.count(old.map(|old| old.status), new.map(|new| new.status), finished_at);
    if counts != before {
        counts.put(tx, queue);
    }
    Ok(())
}

/// Key of the delivery's entry in the index of its queue. Every delivery has exactly one.
fn index_entry(delivery: &Delivery) -> Vec<u8> {
    let class = QueueClass::of(delivery);
    let position = (delivery.event, delivery.target.recipient);
    keys::index_entry(queue_of(delivery), class, class.time_of(delivery), position)
}

fn index_value(delivery: &Delivery) -> Vec<u8> {
    let wait = Some(delivery.wait_ms).filter(|wait| *wait > 0);
    wait.map_or_else(Vec::new, |wait| wait.to_be_bytes().to_vec())
}

/// Decodes the milliseconds of the wait in the value of an index entry.
pub(super) fn indexed_wait(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_be_bytes)
}
