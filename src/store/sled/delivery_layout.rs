//! Keys of queues and deliveries.
//!
//! ```text
//! J form(8) integration(8) state of a queue, JSON, see `queue`
//! n form(8) integration(8) counters of a queue, see `queue`
//! v workspace(8) event(16) target(8) a delivery, JSON, see `delivery_rows`
//! q form(8) integration(8) class(1) time(8) event(16) recipient(1) index of a queue's deliveries by state, see `QueueClass`:
//!    milliseconds of the wait(8) before an attempt, or empty; the first recipient has no byte
//! B form(8) event(16) target(8) the body of a delivery
//! e form(8) event(16) an event, JSON, except the completion of a submission, which is made from the submission
//! a form(8) event(16) target(8) number(4) an attempt, JSON
//! r form(8) submission(16) event(16) an event of `e` that is about the submission, empty
//! c form(8) day(4) mailbox(8) when a confirmation was sent there(8), and its delivery(16)
//! c form(8) when the form's hour began(8), and the confirmations permitted since(8)
//! ```
//!
//! A target is an integration, whose four highest bits, which are zero otherwise, are the recipient.

use std::ops::Bound;

use super::engine::tx::KeyRange;
use super::layout::{key, sortable, undecodable, unsortable, with_prefix};
use super::queue::QueueKey;
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::id::{DeliveryId, DeliveryTarget, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::Result;
use crate::store::queue::QueueClass;

pub(super) const QUEUES: u8 = b'J';
pub(super) const INDEX: u8 = b'q';
const DELIVERIES: u8 = b'v';

pub(super) fn queue(form: FormId, integration: IntegrationId) -> Vec<u8> {
    key(QUEUES, &[&form.to_bytes(), &integration.to_bytes()])
}

/// Range of the [queues](queue), or of their [index entries](index_entry), after the queue `last`, of all if it is `None`.
pub(super) fn after(kind: u8, last: Option<QueueKey>) -> KeyRange {
    let (start, end) = with_prefix(vec![kind]);
    let beyond = |(form, integration): QueueKey| {
        Bound::Included(key(kind, &[&form.to_bytes(), &integration.to_bytes(), &[u8::MAX]]))
    };
    (last.map_or(start, beyond), end)
}

/// Decodes the form and the integration at the beginning of a key of [`queue`] or [`index_entry`].
pub(super) fn indexed_queue(key: &[u8]) -> Result<QueueKey> {
    let unknown = || undecodable("a queue");
    let (form, rest) = key.get(1..).and_then(<[u8]>::split_first_chunk).ok_or_else(unknown)?;
    let integration = rest.first_chunk().ok_or_else(unknown)?;
    Ok((FormId::from_bytes(*form), IntegrationId::from_bytes(*integration)))
}

pub(super) fn queue_counts(form: FormId, integration: IntegrationId) -> Vec<u8> {
    key(b'n', &[&form.to_bytes(), &integration.to_bytes()])
}

pub(super) fn delivery(workspace: WorkspaceId, event: EventId, target: DeliveryTarget) -> Vec<u8> {
    key(DELIVERIES, &[&workspace.to_bytes(), &event.to_bytes(), &target.to_bytes()])
}

pub(super) fn deliveries(workspace: WorkspaceId) -> KeyRange {
    with_prefix(key(DELIVERIES, &[&workspace.to_bytes()]))
}

pub(super) fn deliveries_of(workspace: WorkspaceId, event: EventId) -> KeyRange {
    with_prefix(key(DELIVERIES, &[&workspace.to_bytes(), &event.to_bytes()]))
}

/// Range of the deliveries of `workspace` that may have this id.
pub(super) fn deliveries_with(workspace: WorkspaceId, id: DeliveryId) -> KeyRange {
    let (first, last) = id.events().into_inner();
    (deliveries_of(workspace, first).0, deliveries_of(workspace, last).1)
}

/// Decodes the event and the target in a key of [`delivery`].
pub(super) fn listed_delivery(key: &[u8]) -> Result<(EventId, DeliveryTarget)> {
    let unknown = || undecodable("a delivery");
    let (rest, target) = key.split_last_chunk().ok_or_else(unknown)?;
    let event = rest.last_chunk().ok_or_else(unknown)?;
    Ok((EventId::from_bytes(*event), DeliveryTarget::from_bytes(*target)))
}

pub(super) fn index_entry(
    queue: QueueKey,
    class: QueueClass,
    at: Timestamp,
    (event, recipient): (EventId, u8),
) -> Vec<u8> {
    let mut entry = index_prefix(queue, class);
    entry.extend_from_slice(&sortable(at));
    entry.extend_from_slice(&event.to_bytes());
    entry.extend(Some(recipient).filter(|recipient| *recipient > 0));
    entry
}

/// A decoded key of [`index_entry`].
pub(super) struct IndexPosition {
    pub(super) at: Timestamp,
    pub(super) event: EventId,
    pub(super) target: DeliveryTarget,
}

impl IndexPosition {
    pub(super) fn decode(key: &[u8]) -> Result<Self> {
        let unknown = || undecodable("a queue entry");
        let (_, integration) = indexed_queue(key)?;
        let (at, rest) = key.get(18..).and_then(<[u8]>::split_first_chunk).ok_or_else(unknown)?;
        let (event, recipient) = rest.split_first_chunk().ok_or_else(unknown)?;
        let recipient = recipient.first().copied().unwrap_or(0);
        let target = DeliveryTarget { integration, recipient };
        Ok(Self { at: unsortable(*at), event: EventId::from_bytes(*event), target })
    }
}

pub(super) fn index_of_form(form: FormId) -> KeyRange {
    with_prefix(key(INDEX, &[&form.to_bytes()]))
}

/// Range of a class of deliveries of a queue.
pub(super) fn index(queue: QueueKey, class: QueueClass) -> KeyRange {
    with_prefix(index_prefix(queue, class))
}

/// Range of a class of deliveries of a queue, from the time `from` on.
pub(super) fn index_from(queue: QueueKey, class: QueueClass, from: Timestamp) -> KeyRange {
    let start = [&index_prefix(queue, class)[..], &sortable(from)].concat();
    (Bound::Included(start), index(queue, class).1)
}

/// Range of a class of deliveries of a queue, up to the time `until` and including it.
pub(super) fn index_until(queue: QueueKey, class: QueueClass, until: Timestamp) -> KeyRange {
    let after = Timestamp::from_millis(until.millis() + 1);
    let end = [&index_prefix(queue, class)[..], &sortable(after)].concat();
    (index(queue, class).0, Bound::Excluded(end))
}

fn index_prefix(queue: QueueKey, class: QueueClass) -> Vec<u8> {
    key(INDEX, &[&queue.0.to_bytes(), &queue.1.to_bytes(), &[class as u8]])
}

pub(super) fn body(delivery: &Delivery) -> Vec<u8> {
    key(b'B', &[&delivery.form.to_bytes(), &delivery.event.to_bytes(), &delivery.target.to_bytes()])
}

pub(super) fn attempt(delivery: &Delivery, number: u32) -> Vec<u8> {
    let Delivery { form, event, target, .. } = delivery;
    key(b'a', &[&form.to_bytes(), &event.to_bytes(), &target.to_bytes(), &number.to_be_bytes()])
}

pub(super) fn attempts(delivery: &Delivery) -> KeyRange {
    let Delivery { form, event, target, .. } = delivery;
    with_prefix(key(b'a', &[&form.to_bytes(), &event.to_bytes(), &target.to_bytes()]))
}

pub(super) fn event(form: FormId, event: EventId) -> Vec<u8> {
    key(b'e', &[&form.to_bytes(), &event.to_bytes()])
}

pub(super) fn submission_event(form: FormId, submission: SubmissionId, event: EventId) -> Vec<u8> {
    key(b'r', &[&form.to_bytes(), &submission.to_bytes(), &event.to_bytes()])
}

/// Range of the [events](submission_event) about a submission, other than its completion.
pub(super) fn submission_events(form: FormId, submission: SubmissionId) -> KeyRange {
    with_prefix(key(b'r', &[&form.to_bytes(), &submission.to_bytes()]))
}

pub(super) fn confirmation(form: FormId, day: u32, mailbox: u64) -> Vec<u8> {
    key(b'c', &[&form.to_bytes(), &day.to_be_bytes(), &mailbox.to_be_bytes()])
}

pub(super) fn confirmations(form: FormId) -> Vec<u8> {
    key(b'c', &[&form.to_bytes()])
}
