//! Events, recorded in the write that causes them, with the deliveries that they cause.

use super::counters::Counters;
use super::delivery_layout as keys;
use super::delivery_rows;
use super::engine::tx::Tx;
use super::layout;
use super::queue::QueueCounts;
use super::row_source::RowSource;
use super::{Context, submission_trash};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::event::{Event, EventType, Subject};
use crate::domain::submission::Submission;
use crate::id::{EventId, FormId, IntegrationId, SubmissionId};
use crate::store::{LoadedDelivery, Result};

/// Records that `submission` was completed. Its event is made from the submission.
pub(super) fn record_completed(
    tx: &mut Tx<'_>,
    form: &Form,
    counters: Counters,
    submission: SubmissionId,
) -> Result<Counters> {
    let subscribers: Vec<_> = form.subscribers(EventType::SubmissionCompleted).collect();
    if subscribers.is_empty() {
        return Ok(counters);
    }
    let sequence = counters.sequence + 1;
    insert_deliveries(tx, form, &Delivery::of_completed(form.id, submission, sequence), &subscribers)?;
    Ok(Counters { sequence, ..counters })
}

/// Records another event of `form`, with a snapshot, if an integration other than `except` subscribes to it.
pub(super) fn record(
    tx: &mut Tx<'_>,
    context: &Context,
    form: &Form,
    (event_type, subject): (EventType, Subject),
    except: Option<IntegrationId>,
    now: Timestamp,
) -> Result<()> {
    let subscribers: Vec<_> = form.subscribers(event_type).filter(|one| Some(one.id) != except).collect();
    if subscribers.is_empty() {
        return Ok(());
    }
    let counters = Counters::of(tx, form.id)?;
    let sequence = counters.sequence + 1;
    Counters { sequence, ..counters }.put(tx, form.id);
    let id = EventId::draw(now.millis(), &*context.random);
    let event = Event { id, event_type, at: now, sequence, form: form.id, subject };
    tx.put(keys::event(form.id, id), layout::to_json(&event)?);
    if let Some(submission) = event.submission() {
        tx.put(keys::submission_event(form.id, submission, id), Vec::new());
    }
    insert_deliveries(tx, form, &Delivery::of_event(&event), &subscribers)
}

/// Writes a copy of `delivery` for each address of `subscribers`.
pub(super) fn insert_deliveries(
    tx: &mut Tx<'_>,
    form: &Form,
    delivery: &Delivery,
    subscribers: &[&Integration],
) -> Result<()> {
    delivery.copies(subscribers).iter().try_for_each(|new| delivery_rows::insert(tx, form.workspace, new))
}

/// Records that the files of `form` have to show something that they have no delivery for.
pub(super) fn record_file_change(tx: &mut Tx<'_>, form: &Form) -> Result<()> {
    for integration in form.integrations.iter().filter(|one| one.is_file()) {
        let queue = (form.id, integration.id);
        let counts = QueueCounts::read(tx, queue)?;
        QueueCounts { changes: counts.changes + 1, ..counts }.put(tx, queue);
    }
    Ok(())
}

/// Whether the submission that a delivery is about was erased. Its rows may follow in the background.
pub(super) fn is_erased(rows: &impl RowSource, delivery: &Delivery) -> Result<bool> {
    let submission = delivery.submission.filter(|_| !delivery.event_type.is_deletion());
    let purge = submission.map(|submission| rows.get(&layout::history_purge(delivery.form, submission)));
    Ok(purge.transpose()?.flatten().is_some())
}

/// Reads what a delivery sends.
pub(super) fn load(rows: &impl RowSource, delivery: Delivery) -> Result<LoadedDelivery> {
    if is_erased(rows, &delivery)? {
        return Ok(LoadedDelivery { delivery, event: None, is_in_trash: false, body: None });
    }
    let body = rows.get(&keys::body(&delivery))?;
    let (event, is_in_trash) = match delivery.event_type {
        EventType::SubmissionCompleted => read_completed(rows, &delivery)?,
        _ => read_snapshot(rows, &delivery)?,
    };
    Ok(LoadedDelivery { delivery, event, is_in_trash, body })
}

fn read_snapshot(rows: &impl RowSource, delivery: &Delivery) -> Result<(Option<Event>, bool)> {
    let decode = |body: &[u8]| layout::from_json("an event", body);
    let event = rows.read(&keys::event(delivery.form, delivery.event), decode)?;
    let submission = delivery.submission.filter(|_| !delivery.event_type.is_deletion());
    Ok((event, is_in_trash(rows, delivery.form, submission)?))
}

fn read_completed(rows: &impl RowSource, delivery: &Delivery) -> Result<(Option<Event>, bool)> {
    let id = delivery.event.completed_submission();
    let Some(found) = submission_trash::read_original(rows, delivery.form, id)? else {
        return Ok((None, false));
    };
    let is_in_trash = found.deleted_at.is_some();
    let event = Event::of_completed(Submission { deleted_at: None, ..found }, delivery.sequence);
    Ok((Some(event), is_in_trash))
}

pub(super) fn is_in_trash(
    rows: &impl RowSource,
    form: FormId,
    submission: Option<SubmissionId>,
) -> Result<bool> {
    let row = submission.map(|submission| rows.get(&layout::trashed_submission(form, submission)));
    Ok(row.transpose()?.flatten().is_some())
}
