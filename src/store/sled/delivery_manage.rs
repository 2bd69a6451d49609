//! One delivery: finding it, whether it has rows of its own or only an entry in the outbox, and changing it by hand.

use std::ops::Bound;
use std::sync::Arc;

use super::delivery_rows::{self, DeliveryRow};
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::forms::find_cached;
use super::outbox::{self, OutboxEntry, OutboxRow};
use super::queue_state::StoredQueue;
use super::queue_writer::QueueContext;
use super::row_source::RowSource;
use super::{SledStore, delivery_layout as keys, events, layout, locate};
use crate::clock::Timestamp;
use crate::domain::delivery::lifecycle::EventHead;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::domain::integration::Integration;
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, WorkspaceId};
use crate::store::{DeliveryPlace, DueDelivery, Result, StepResult};

/// A change of a delivery by hand.
#[derive(Debug, Clone, Copy)]
pub(super) enum ManualChange {
    /// Makes it due at a time.
    Redeliver(Timestamp),
    /// Cancels it at a time.
    Cancel(Timestamp),
}

impl SledStore {
    /// Finds a delivery: by the list, or in the outbox.
    pub(super) fn find_row(&self, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<DeliveryRow>> {
        if let Some(row) = delivery_rows::find(&self.reader, workspace, id)? {
            return Ok(Some(row));
        }
        for form in self.outbox_forms(workspace)? {
            for integration in &form.integrations {
                if let Some(row) = self.find_entry(&form, id.event(integration.id), integration.id)? {
                    return Ok(Some(row));
                }
            }
        }
        // Since the list was read, it may have been taken from the outbox.
        delivery_rows::find(&self.reader, workspace, id)
    }

    /// Returns the delivery of an entry of the outbox, as it will be stored.
    fn find_entry(
        &self,
        form: &Form,
        event: EventId,
        integration: IntegrationId,
    ) -> Result<Option<DeliveryRow>> {
        let submission = event.completed_submission();
        let is_known = locate::read_live(&self.reader, form.id, submission)?.is_some()
            || events::is_in_trash(&self.reader, form.id, submission)?;
        if !is_known {
            return Ok(None);
        }
        let Some(row) = outbox::seek(&self.reader, form.id, submission)? else { return Ok(None) };
        let entry = row.entries().find(|entry| entry.submission == submission);
        let Some(entry) = entry.filter(|_| row.names(integration)) else { return Ok(None) };
        let position = StoredQueue::read(&self.reader, form.id, integration)?.position;
        let head = EventHead::of_completed(form.id, submission);
        let waits = position < entry.sequence;
        Ok(waits.then(|| DeliveryRow::new(Delivery::new(head, integration), entry.sequence)))
    }

    /// Returns the forms of a workspace with an outbox that is not empty. Takes time by the number of such outboxes, or of the
    /// workspace's forms, whichever is less: both are in order of the form, and each skips what the other lacks.
    pub(super) fn outbox_forms(&self, workspace: WorkspaceId) -> Result<Vec<Arc<Form>>> {
        let (mut forms, mut outboxes) = (Vec::new(), keys::outboxes());
        loop {
            let outbox = self.reader.scan(outboxes.clone(), Direction::Ascending, 1)?.pop();
            let Some((outbox, _)) = outbox else { return Ok(forms) };
            let (with_outbox, _) = keys::outbox_position(&outbox)?;
            let range = layout::forms_from(workspace, with_outbox);
            let form = self.reader.scan(range, Direction::Ascending, 1)?.pop();
            let Some((form, _)) = form else { return Ok(forms) };
            let form = layout::listed_form(&form)?;
            outboxes.0 = if form == with_outbox {
                forms.extend(self.form(workspace, form)?);
                Bound::Excluded(keys::outbox_row(form, u64::MAX))
            } else {
                Bound::Included(keys::outbox_row(form, 0))
            };
        }
    }

    /// Returns a delivery as readers are shown it.
    pub(super) fn show(&self, workspace: WorkspaceId, delivery: Delivery) -> Result<Option<Delivery>> {
        let Some(form) = self.form(workspace, delivery.form)? else { return Ok(None) };
        let health = StoredQueue::read(&self.reader, form.id, delivery.integration)?.health;
        Ok(Some(delivery.shown(&form, &health)))
    }

    /// Reads a delivery of a form at its place, with rows of its own or in the outbox.
    fn read_row(&self, form: &Form, place: DeliveryPlace) -> Result<Option<DeliveryRow>> {
        let DeliveryPlace { event, integration, .. } = place;
        if let Some(row) = DeliveryRow::read(&self.reader, form.id, event, integration)? {
            return Ok(Some(row));
        }
        if let Some(row) = self.find_entry(form, event, integration)? {
            return Ok(Some(row));
        }
        // Since then, it may have been taken from the outbox.
        DeliveryRow::read(&self.reader, form.id, event, integration)
    }

    pub(super) fn read_delivery(
        &self,
        workspace: WorkspaceId,
        place: DeliveryPlace,
    ) -> Result<Option<(Arc<Form>, DueDelivery)>> {
        let Some(form) = self.form(workspace, place.form)? else { return Ok(None) };
        let Some(row) = self.read_row(&form, place)? else { return Ok(None) };
        let due = self.due(row)?;
        let Some(delivery) = self.show(workspace, due.delivery)? else { return Ok(None) };
        Ok(Some((form, DueDelivery { delivery, ..due })))
    }

    /// Changes a delivery by hand. Returns it as readers are shown it.
    pub(super) async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        place: DeliveryPlace,
        change: ManualChange,
    ) -> Result<StepResult<Delivery>> {
        let Some(form) = self.form(workspace, place.form)? else { return Ok(StepResult::Missing) };
        let Some(found) = self.read_row(&form, place)? else { return Ok(StepResult::Missing) };
        let context = self.queue_context();
        let work = move |tx: &mut Tx<'_>| apply(tx, &context, workspace, (place, found.sequence), change);
        self.write_and_wake(WriteKind::Normal, (workspace, place.form), work).await
    }
}

fn apply(
    tx: &mut Tx<'_>,
    context: &QueueContext,
    workspace: WorkspaceId,
    (place, sequence): (DeliveryPlace, u64),
    change: ManualChange,
) -> Result<StepResult<Delivery>> {
    let Some(form) = find_cached(tx, &context.forms, workspace, place.form)? else {
        return Ok(StepResult::Missing);
    };
    let state = StoredQueue::read(tx, place.form, place.integration)?;
    let old = DeliveryRow::read(tx, place.form, place.event, place.integration)?;
    let row = match &old {
        Some(row) => Some(row.clone()),
        None => entry_row(tx, &state, place, sequence)?,
    };
    let Some(row) = row else { return Ok(StepResult::Missing) };
    let shown = row.delivery.clone().shown(&form, &state.health);
    if let Some(why) = refusal(form.integration(place.integration), &shown, &change) {
        return Ok(StepResult::Refused(why));
    }
    let changed = match change {
        ManualChange::Redeliver(_) if shown.status == DeliveryStatus::InFlight => {
            return Ok(StepResult::Done(shown));
        }
        ManualChange::Redeliver(at) if shown.is_waiting() => {
            Delivery { is_manual: true, ..row.delivery.resumed(at) }
        }
        ManualChange::Redeliver(at) => row.delivery.redelivered(at),
        ManualChange::Cancel(now) => row.delivery.canceled(now),
    };
    if changed.status.is_final() {
        tx.delete(row.body_key());
    }
    let changed = row.with(changed);
    match &old {
        Some(old) => changed.replace(tx, old)?,
        None => {
            changed.insert(tx, workspace)?;
            let ahead = state.ahead + 1;
            StoredQueue { ahead, ..state.clone() }.put(tx, place.form, place.integration)?;
        }
    }
    Ok(StepResult::Done(changed.delivery.shown(&form, &state.health)))
}

/// Why a delivery cannot be changed by hand; `integration` is `None` if it was deleted.
fn refusal(integration: Option<&Integration>, delivery: &Delivery, change: &ManualChange) -> Option<Refusal> {
    match change {
        ManualChange::Cancel(_) => (!delivery.is_waiting()).then_some(Refusal::NotPending),
        ManualChange::Redeliver(_) => {
            let Some(integration) = integration else {
                return Some(Refusal::NotRepeatable("the integration of the delivery was deleted"));
            };
            let why = Refusal::NotRepeatable("the row of the submission is in the file already");
            (!integration.can_repeat(delivery)).then_some(why)
        }
    }
}

/// Returns the delivery of the event `sequence` if it is still in the outbox.
fn entry_row(
    tx: &Tx<'_>,
    state: &StoredQueue,
    place: DeliveryPlace,
    sequence: u64,
) -> Result<Option<DeliveryRow>> {
    let Some(row) = outbox::find_row(tx, place.form, sequence)? else { return Ok(None) };
    let is_entry = |entry: &OutboxEntry| {
        entry.sequence == sequence && EventId::of_completed(entry.submission) == place.event
    };
    let waits = row.names(place.integration)
        && state.position < sequence
        && row.entries().any(|entry| is_entry(&entry));
    let head = EventHead::of_completed(place.form, place.event.completed_submission());
    Ok(waits.then(|| DeliveryRow::new(Delivery::new(head, place.integration), sequence)))
}

/// Reads the row of the outbox before the event `sequence`.
pub(super) fn row_before(rows: &impl RowSource, form: FormId, sequence: u64) -> Result<Option<OutboxRow>> {
    let Some(before) = sequence.checked_sub(1) else { return Ok(None) };
    let row = rows.scan(keys::outbox_up_to(form, before), Direction::Descending, 1)?.pop();
    row.map(|(key, body)| OutboxRow::decode(&key, &body)).transpose()
}
