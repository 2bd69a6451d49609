//! Events other than the completion of a submission: recorded with a snapshot and their deliveries, in the write that causes
//! them.

use super::counters::Counters;
use super::delivery_layout as keys;
use super::delivery_rows::DeliveryRow;
use super::engine::tx::Tx;
use super::layout;
use super::row_source::RowSource;
use super::submission_trash;
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::lifecycle::EventHead;
use crate::domain::form::Form;
use crate::domain::integration::event::{Event, EventType, Subject};
use crate::domain::submission::Submission;
use crate::id::{EventId, FormId, IntegrationId, Random, SubmissionId};
use crate::store::Result;

/// Records an event of `form` if an integration other than `except` subscribes to it.
pub(super) fn record(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    form: &Form,
    (event_type, subject): (EventType, Subject),
    except: Option<IntegrationId>,
    now: Timestamp,
) -> Result<()> {
    let subscribers: Vec<_> = form.subscribers(event_type).filter(|id| Some(*id) != except).collect();
    if subscribers.is_empty() {
        return Ok(());
    }
    let counters = Counters::of(tx, form.id)?;
    let sequence = counters.sequence + 1;
    Counters { sequence, ..counters }.put(tx, form.id);
    let id = EventId::draw(now.millis(), random);
    let event = Event { id, event_type, at: now, sequence, form: form.id, subject };
    tx.put(keys::event(form.id, id), layout::to_json(&event)?);
    let submission = event.submission();
    if let Some(submission) = submission {
        tx.put(keys::submission_event(form.id, submission, id), Vec::new());
    }
    let head = EventHead { id, event_type, at: now, form: form.id, submission };
    for integration in subscribers {
        DeliveryRow::new(Delivery::new(head, integration), sequence).insert(tx, form.workspace)?;
    }
    Ok(())
}

/// An event of a delivery.
pub(super) struct ReadEvent {
    /// `None` if what it is about was erased.
    pub(super) event: Option<Event>,
    /// Whether the submission that it is about is in the trash, so that it waits.
    pub(super) is_in_trash: bool,
}

/// Reads the event of a delivery, whose number is `sequence`.
pub(super) fn read(rows: &impl RowSource, delivery: &Delivery, sequence: u64) -> Result<ReadEvent> {
    if delivery.event_type != EventType::SubmissionCompleted {
        let event = rows.get(&keys::event(delivery.form, delivery.event))?;
        let event: Option<Event> = event.map(|body| layout::from_json("an event", &body)).transpose()?;
        let is_in_trash = match delivery.submission {
            Some(submission) if !delivery.event_type.is_deletion() => {
                is_in_trash(rows, delivery.form, submission)?
            }
            Some(_) | None => false,
        };
        return Ok(ReadEvent { event, is_in_trash });
    }
    let id = delivery.event.completed_submission();
    let Some(found) = submission_trash::read_original(rows, delivery.form, id)? else {
        return Ok(ReadEvent { event: None, is_in_trash: false });
    };
    let is_in_trash = found.deleted_at.is_some();
    let submission = Submission { deleted_at: None, ..found };
    let event = Event {
        id: delivery.event,
        event_type: EventType::SubmissionCompleted,
        at: submission.submitted_at(),
        sequence,
        form: delivery.form,
        subject: Subject::Submission(Box::new(submission)),
    };
    Ok(ReadEvent { event: Some(event), is_in_trash })
}

pub(super) fn is_in_trash(rows: &impl RowSource, form: FormId, submission: SubmissionId) -> Result<bool> {
    Ok(rows.get(&layout::trashed_submission(form, submission))?.is_some())
}
