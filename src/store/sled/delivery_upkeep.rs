//! Changes of many deliveries at a time: with their submission or their integration, and when they have ended long ago.

use std::ops::{Bound, RangeBounds};

use super::delivery_layout::{self as keys, QueueClass, WAITING_CLASSES};
use super::delivery_rows::DeliveryRow;
use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::forms::find;
use super::outbox::OutboxRow;
use super::queue_state::{Revival, StoredQueue};
use super::queue_writer::is_passed;
use super::{BATCH_ROWS, layout};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::integration::event::EventType;
use crate::domain::submission::Submission;
use crate::id::{EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::{QueueId, Result};

/// Deliveries changed per transaction; each is about four rows.
const BATCH: usize = BATCH_ROWS / 4;

/// Days after which a dead delivery is erased, and any other that has ended.
const DEAD_DAYS: i64 = 30;
const ENDED_DAYS: i64 = 7;

/// Makes the deliveries of a restored submission pending again.
pub(super) fn resume_submission(tx: &mut Tx<'_>, submission: &Submission, now: Timestamp) -> Result<()> {
    let Submission { form, id, .. } = *submission;
    let mut events = vec![EventId::of_completed(id)];
    for (key, _) in tx.scan(keys::submission_events(form, id), Direction::Ascending, usize::MAX)? {
        events.push(keys::listed_event(&key)?);
    }
    for event in events {
        for row in rows_of(tx, form, event)? {
            if row.delivery.status == DeliveryStatus::Paused {
                row.with(row.delivery.resumed(now)).replace(tx, &row)?;
            }
        }
    }
    Ok(())
}

/// Cancels a batch of the deliveries that wait for an erased submission, as of its deletion, and erases what was kept to
/// send and the log of attempts. Its deletion itself is still delivered.
pub(super) fn cancel_events(
    tx: &mut Tx<'_>,
    form: FormId,
    submission: SubmissionId,
    deleted: Timestamp,
) -> Result<Progress> {
    let events = tx.scan(keys::submission_events(form, submission), Direction::Ascending, 2)?;
    for (key, _) in &events {
        let event = keys::listed_event(key)?;
        cancel_event(tx, form, event, deleted)?;
        tx.delete(key.clone());
    }
    if events.is_empty() {
        cancel_event(tx, form, EventId::of_completed(submission), deleted)?;
        return Ok(Progress::Done);
    }
    Ok(Progress::More)
}

fn cancel_event(tx: &mut Tx<'_>, form: FormId, event: EventId, deleted: Timestamp) -> Result<()> {
    let mut is_erased = true;
    for row in rows_of(tx, form, event)? {
        if row.delivery.event_type.is_deletion() {
            is_erased = false;
            continue;
        }
        tx.delete(row.body_key());
        // The receiver may have answered with what it got.
        let Delivery { form, event, integration, .. } = row.delivery;
        for (key, _) in tx.scan(keys::attempts(form, event, integration), Direction::Ascending, usize::MAX)? {
            tx.delete(key);
        }
        if !row.delivery.status.is_final() {
            row.with(row.delivery.canceled(deleted)).replace(tx, &row)?;
        }
    }
    if is_erased {
        tx.delete(keys::event(form, event));
    }
    Ok(())
}

fn rows_of(tx: &Tx<'_>, form: FormId, event: EventId) -> Result<Vec<DeliveryRow>> {
    let rows = tx.scan(keys::deliveries_of(form, event), Direction::Ascending, usize::MAX)?;
    rows.iter().map(|(_, body)| DeliveryRow::decode(body)).collect()
}

/// A queue that is being dropped.
#[derive(Clone)]
pub(super) struct QueueRemoval {
    pub(super) queue: QueueId,
    /// Number of the last event of the outbox that was looked at.
    pub(super) seen: u64,
}

impl QueueRemoval {
    /// Cancels a batch of the deliveries that wait, then deletes a batch of outbox rows that nobody else needs, and finally the
    /// state of the queue.
    pub(super) fn step(&mut self, tx: &mut Tx<'_>) -> Result<Progress> {
        let QueueId { workspace, form: form_id, integration } = self.queue;
        let Some(form) = find(tx, workspace, form_id)? else { return Ok(Progress::Done) };
        if form.integration(integration).is_some() {
            return Ok(Progress::Done);
        }
        for class in WAITING_CLASSES {
            let rows = tx.scan(keys::index((form_id, integration), class), Direction::Ascending, BATCH)?;
            if !rows.is_empty() {
                for (key, _) in rows {
                    cancel_entry(tx, self.queue, key, form.updated_at)?;
                }
                return Ok(Progress::More);
            }
        }
        let rows = tx.scan(keys::outbox_after(form_id, self.seen), Direction::Ascending, BATCH_ROWS / 2)?;
        let mut positions = Vec::new();
        for (key, body) in &rows {
            let row = OutboxRow::decode(key, body)?;
            self.seen = row.first();
            if row.names(integration) && is_passed(tx, &form, &row, &mut positions)? {
                tx.delete(row.key());
            }
        }
        if !rows.is_empty() {
            return Ok(Progress::More);
        }
        tx.delete(keys::queue(form_id, integration));
        Ok(Progress::Done)
    }
}

fn cancel_entry(tx: &mut Tx<'_>, queue: QueueId, entry: Vec<u8>, at: Timestamp) -> Result<()> {
    let (_, event) = keys::index_position(&entry)?;
    match DeliveryRow::read(tx, queue.form, event, queue.integration)? {
        Some(row) => {
            tx.delete(row.body_key());
            row.with(row.delivery.canceled(at)).replace(tx, &row)
        }
        None => {
            tx.delete(entry);
            Ok(())
        }
    }
}

/// Makes a batch of the deliveries pending again whose revival is recorded in the state of their queue.
pub(super) fn revive(tx: &mut Tx<'_>, queue: QueueId) -> Result<Progress> {
    let key = keys::queue_key(queue);
    let Some(form) = find(tx, queue.workspace, queue.form)? else { return Ok(Progress::Done) };
    let state = StoredQueue::read(tx, queue.form, queue.integration)?;
    let Some(Revival { since, until }) = state.revival else { return Ok(Progress::Done) };
    let mut range = keys::index_from(key, QueueClass::Dead, since);
    range.1 = keys::index_until(key, QueueClass::Dead, until).1;
    let rows = tx.scan(range, Direction::Ascending, BATCH)?;
    if rows.is_empty() || form.integration(queue.integration).is_none() {
        StoredQueue { revival: None, ..state }.put(tx, queue.form, queue.integration)?;
        return Ok(Progress::Done);
    }
    for (key, _) in rows {
        let (_, event) = keys::index_position(&key)?;
        match DeliveryRow::read(tx, queue.form, event, queue.integration)? {
            Some(row) => row.with(row.delivery.restarted(until)).replace(tx, &row)?,
            None => tx.delete(key),
        }
    }
    Ok(Progress::More)
}

/// Erasure of deliveries that ended long ago, queue by queue.
#[derive(Clone)]
pub(super) struct Pruning {
    now: Timestamp,
    /// The last queue that is done.
    done: Option<(FormId, IntegrationId)>,
    /// The last index entry of the next queue whose delivery is kept.
    kept: Option<Vec<u8>>,
}

impl Pruning {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { now, done: None, kept: None }
    }

    pub(super) fn step(&mut self, tx: &mut Tx<'_>) -> Result<Progress> {
        let next = tx.scan(keys::indexes_after(self.done), Direction::Ascending, 1)?.pop();
        let Some((key, _)) = next else { return Ok(Progress::Done) };
        let queue = keys::indexed_queue(&key)?;
        // A form without a workspace is being purged.
        if let Some(workspace) = tx.get(&layout::form_workspace(queue.0))? {
            let workspace = layout::listed_workspace(&workspace)?;
            for (class, days) in [(QueueClass::Dead, DEAD_DAYS), (QueueClass::Ended, ENDED_DAYS)] {
                if self.erase(tx, workspace, queue, (class, days))? == Progress::More {
                    return Ok(Progress::More);
                }
            }
        }
        (self.done, self.kept) = (Some(queue), None);
        Ok(Progress::More)
    }

    fn erase(
        &mut self,
        tx: &mut Tx<'_>,
        workspace: WorkspaceId,
        queue: (FormId, IntegrationId),
        (class, days): (QueueClass, i64),
    ) -> Result<Progress> {
        let cutoff = Timestamp::from_millis(self.now.millis() - days * DAY_MILLIS);
        let mut range = keys::index_until(queue, class, cutoff);
        // The classes of a queue are erased in the order of their keys.
        if let Some(kept) = self.kept.clone().filter(|kept| range.contains(kept)) {
            range.0 = Bound::Excluded(kept);
        }
        let rows = tx.scan(range, Direction::Ascending, BATCH)?;
        // The queue of an integration that was removed has no state any more.
        let state =
            tx.get(&keys::queue(queue.0, queue.1))?.map(|body| StoredQueue::decode(&body)).transpose()?;
        let position = state.map_or(u64::MAX, |state| state.position);
        let mut left = BATCH_ROWS;
        for (key, _) in &rows {
            let (_, event) = keys::index_position(key)?;
            let row = DeliveryRow::read(tx, queue.0, event, queue.1)?;
            if row.as_ref().is_some_and(|row| is_ahead(row, position)) {
                self.kept = Some(key.clone());
                continue;
            }
            let attempts = tx.scan(keys::attempts(queue.0, event, queue.1), Direction::Ascending, left)?;
            left = left.saturating_sub(attempts.len() + 4);
            attempts.into_iter().for_each(|(key, _)| tx.delete(key));
            if left == 0 {
                return Ok(Progress::More);
            }
            match row {
                Some(row) => erase_delivery(tx, workspace, &row)?,
                None => tx.delete(key.clone()),
            }
        }
        Ok(if rows.is_empty() { Progress::Done } else { Progress::More })
    }
}

/// Whether the delivery, which was canceled or redelivered by hand, is still in the outbox of a queue at `position`. Without its
/// row it would be sent again.
fn is_ahead(row: &DeliveryRow, position: u64) -> bool {
    row.delivery.event_type == EventType::SubmissionCompleted && row.sequence > position
}

/// Deletes the rows of a delivery, and of its event if no other delivery has it.
fn erase_delivery(tx: &mut Tx<'_>, workspace: WorkspaceId, row: &DeliveryRow) -> Result<()> {
    row.delete(tx, workspace);
    let Delivery { form, event, submission, .. } = row.delivery;
    if tx.scan(keys::deliveries_of(form, event), Direction::Ascending, 1)?.is_empty() {
        tx.delete(keys::event(form, event));
        if let Some(submission) = submission {
            tx.delete(keys::submission_event(form, submission, event));
        }
    }
    Ok(())
}
