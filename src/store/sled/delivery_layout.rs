//! Keys of the outbox and of deliveries.
//!
//! ```text
//! z form(8) sequence(8) submissions whose completion is owed to integrations, see `outbox`
//! J form(8) integration(8) state of a queue, JSON, see `queue_state`
//! d form(8) event(16) integration(8) a delivery, JSON, see `delivery_rows`
//! q form(8) integration(8) class(1) time(8) event(16) index of a queue's deliveries by state, see `QueueClass`
//! v workspace(8) event(16) integration(8) list order of deliveries: the form(8)
//! B form(8) event(16) integration(8) the body of a delivery
//! e form(8) event(16) an event, JSON, except the completion of a submission, which is made from the submission
//! a form(8) event(16) integration(8) number(4) an attempt, JSON
//! r form(8) submission(16) event(16) an event of `e` that is about the submission, empty
//! ```
//!
//! The rows of a group become visible in key order. An entry of the outbox is deleted after the delivery that it became is
//! visible, so that a reader that sees neither may conclude that there is none.

use std::ops::Bound;

use super::engine::tx::KeyRange;
use super::layout::{key, sortable, undecodable, unsortable, with_prefix};
use crate::clock::Timestamp;
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::{QueueId, Result};

const OUTBOX: u8 = b'z';
const QUEUES: u8 = b'J';
const INDEX: u8 = b'q';
const LIST: u8 = b'v';

/// State of a delivery as far as a queue needs it; each has its own range of the index, in order of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueClass {
    /// Due, by the time of the next attempt or the end of the lease: deletions, which a form in the trash does not pause.
    Deletion = 0,
    /// Due, as above: all others.
    Due = 1,
    /// Dead, by the time of the last attempt.
    Dead = 2,
    /// Delivered, canceled or skipped, by that time.
    Ended = 3,
    /// Its submission is in the trash; by the time of the event.
    Paused = 4,
}

/// Classes of deliveries with an attempt to come.
pub(super) const DUE_CLASSES: [QueueClass; 2] = [QueueClass::Deletion, QueueClass::Due];

/// Classes of deliveries that have not ended.
pub(super) const WAITING_CLASSES: [QueueClass; 3] =
    [QueueClass::Deletion, QueueClass::Due, QueueClass::Paused];

pub(super) fn outbox_row(form: FormId, sequence: u64) -> Vec<u8> {
    key(OUTBOX, &[&form.to_bytes(), &sequence.to_be_bytes()])
}

/// Decodes the form and the number of the first event in a key of [`outbox_row`].
pub(super) fn outbox_position(key: &[u8]) -> Result<(FormId, u64)> {
    let (form, sequence) = last_two(key, "an outbox row")?;
    Ok((FormId::from_bytes(form), u64::from_be_bytes(sequence)))
}

/// Range of the outbox of `form`.
pub(super) fn outbox(form: FormId) -> KeyRange {
    with_prefix(key(OUTBOX, &[&form.to_bytes()]))
}

/// Range of the outbox rows of `form` that begin after the event `sequence`.
pub(super) fn outbox_after(form: FormId, sequence: u64) -> KeyRange {
    (Bound::Excluded(outbox_row(form, sequence)), outbox(form).1)
}

/// Range of the outbox rows of `form` that begin with the event `sequence` or before.
pub(super) fn outbox_up_to(form: FormId, sequence: u64) -> KeyRange {
    (outbox(form).0, Bound::Included(outbox_row(form, sequence)))
}

/// Range of the outbox rows of all forms.
pub(super) fn outboxes() -> KeyRange {
    with_prefix(vec![OUTBOX])
}

pub(super) fn queue(form: FormId, integration: IntegrationId) -> Vec<u8> {
    key(QUEUES, &[&form.to_bytes(), &integration.to_bytes()])
}

/// Range of all queues.
pub(super) fn queues() -> KeyRange {
    with_prefix(vec![QUEUES])
}

/// Range of the queues of `form`.
pub(super) fn queues_of(form: FormId) -> KeyRange {
    with_prefix(key(QUEUES, &[&form.to_bytes()]))
}

/// Decodes the form and the integration in a key of [`queue`].
pub(super) fn listed_queue(key: &[u8]) -> Result<(FormId, IntegrationId)> {
    let (form, integration) = last_two(key, "a queue")?;
    Ok((FormId::from_bytes(form), IntegrationId::from_bytes(integration)))
}

pub(super) fn delivery(form: FormId, event: EventId, integration: IntegrationId) -> Vec<u8> {
    key(b'd', &[&form.to_bytes(), &event.to_bytes(), &integration.to_bytes()])
}

/// Range of the deliveries of an event.
pub(super) fn deliveries_of(form: FormId, event: EventId) -> KeyRange {
    with_prefix(key(b'd', &[&form.to_bytes(), &event.to_bytes()]))
}

/// Range of the deliveries of a form.
pub(super) fn deliveries(form: FormId) -> KeyRange {
    with_prefix(key(b'd', &[&form.to_bytes()]))
}

/// Decodes the event and the integration at the end of a key of [`delivery`] or [`list_entry`].
pub(super) fn listed_delivery(key: &[u8]) -> Result<(EventId, IntegrationId)> {
    let unknown = || undecodable("a delivery");
    let (rest, integration) = key.split_last_chunk().ok_or_else(unknown)?;
    let event = rest.last_chunk().ok_or_else(unknown)?;
    Ok((EventId::from_bytes(*event), IntegrationId::from_bytes(*integration)))
}

pub(super) fn index_entry(
    queue: (FormId, IntegrationId),
    class: QueueClass,
    at: Timestamp,
    event: EventId,
) -> Vec<u8> {
    key(INDEX, &[&queue.0.to_bytes(), &queue.1.to_bytes(), &[class as u8], &sortable(at), &event.to_bytes()])
}

/// Decodes the time and the event in a key of [`index_entry`].
pub(super) fn index_position(key: &[u8]) -> Result<(Timestamp, EventId)> {
    let unknown = || undecodable("a queue entry");
    let (rest, event) = key.split_last_chunk().ok_or_else(unknown)?;
    let at = rest.last_chunk().ok_or_else(unknown)?;
    Ok((unsortable(*at), EventId::from_bytes(*event)))
}

/// Range of a class of deliveries of a queue.
pub(super) fn index(queue: (FormId, IntegrationId), class: QueueClass) -> KeyRange {
    with_prefix(index_prefix(queue, class))
}

/// Range of a class of deliveries of a queue, from the time `from` on.
pub(super) fn index_from(queue: (FormId, IntegrationId), class: QueueClass, from: Timestamp) -> KeyRange {
    let start = [&index_prefix(queue, class)[..], &sortable(from)].concat();
    (Bound::Included(start), index(queue, class).1)
}

/// Range of a class of deliveries of a queue, up to the time `until` and including it.
pub(super) fn index_until(queue: (FormId, IntegrationId), class: QueueClass, until: Timestamp) -> KeyRange {
    let after = Timestamp::from_millis(until.millis() + 1);
    let end = [&index_prefix(queue, class)[..], &sortable(after)].concat();
    (index(queue, class).0, Bound::Excluded(end))
}

fn index_prefix(queue: (FormId, IntegrationId), class: QueueClass) -> Vec<u8> {
    key(INDEX, &[&queue.0.to_bytes(), &queue.1.to_bytes(), &[class as u8]])
}

/// Range of the deliveries of all queues after `queue`, of all queues if it is `None`.
pub(super) fn indexes_after(queue: Option<(FormId, IntegrationId)>) -> KeyRange {
    let (start, end) = with_prefix(vec![INDEX]);
    let after = |(form, integration): (FormId, IntegrationId)| {
        Bound::Included(key(INDEX, &[&form.to_bytes(), &integration.to_bytes(), &[u8::MAX]]))
    };
    (queue.map_or(start, after), end)
}

/// Decodes the queue in a key of [`index_entry`].
pub(super) fn indexed_queue(key: &[u8]) -> Result<(FormId, IntegrationId)> {
    listed_queue(key.get(..17).ok_or_else(|| undecodable("a queue entry"))?)
}

pub(super) fn list_entry(workspace: WorkspaceId, event: EventId, integration: IntegrationId) -> Vec<u8> {
    key(LIST, &[&workspace.to_bytes(), &event.to_bytes(), &integration.to_bytes()])
}

/// Range of the [list entries](list_entry) of `workspace`.
pub(super) fn list(workspace: WorkspaceId) -> KeyRange {
    with_prefix(key(LIST, &[&workspace.to_bytes()]))
}

/// Range of the [list entries](list_entry) of `workspace` that the delivery `id` may have.
pub(super) fn list_of(workspace: WorkspaceId, id: DeliveryId) -> KeyRange {
    let (first, last) = id.events().into_inner();
    let entry =
        |event, integration: [u8; 8]| list_entry(workspace, event, IntegrationId::from_bytes(integration));
    (Bound::Included(entry(first, [0; 8])), Bound::Included(entry(last, [u8::MAX; 8])))
}

pub(super) fn body(form: FormId, event: EventId, integration: IntegrationId) -> Vec<u8> {
    key(b'B', &[&form.to_bytes(), &event.to_bytes(), &integration.to_bytes()])
}

pub(super) fn event(form: FormId, event: EventId) -> Vec<u8> {
    key(b'e', &[&form.to_bytes(), &event.to_bytes()])
}

pub(super) fn attempt(form: FormId, event: EventId, integration: IntegrationId, number: u32) -> Vec<u8> {
    key(b'a', &[&form.to_bytes(), &event.to_bytes(), &integration.to_bytes(), &number.to_be_bytes()])
}

/// Range of the attempts of a delivery.
pub(super) fn attempts(form: FormId, event: EventId, integration: IntegrationId) -> KeyRange {
    with_prefix(key(b'a', &[&form.to_bytes(), &event.to_bytes(), &integration.to_bytes()]))
}

pub(super) fn submission_event(form: FormId, submission: SubmissionId, event: EventId) -> Vec<u8> {
    key(b'r', &[&form.to_bytes(), &submission.to_bytes(), &event.to_bytes()])
}

/// Range of the [events](submission_event) about a submission, other than its completion.
pub(super) fn submission_events(form: FormId, submission: SubmissionId) -> KeyRange {
    with_prefix(key(b'r', &[&form.to_bytes(), &submission.to_bytes()]))
}

/// Decodes the event at the end of a key of [`submission_event`].
pub(super) fn listed_event(key: &[u8]) -> Result<EventId> {
    let event = key.last_chunk().ok_or_else(|| undecodable("an event"))?;
    Ok(EventId::from_bytes(*event))
}

/// The part of a queue's id that its keys have.
pub(super) fn queue_key(queue: QueueId) -> (FormId, IntegrationId) {
    (queue.form, queue.integration)
}

fn last_two(key: &[u8], what: &str) -> Result<([u8; 8], [u8; 8])> {
    let (rest, second) = key.split_last_chunk().ok_or_else(|| undecodable(what))?;
    let first = rest.last_chunk().ok_or_else(|| undecodable(what))?;
    Ok((*first, *second))
}
