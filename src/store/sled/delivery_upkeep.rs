//! Changes of many deliveries at a time: with their submission or their integration, when they have ended long ago, and when
//! the clock was set back.

use std::ops::Bound;
use std::sync::Arc;

use super::delivery_layout::{self as keys, IndexPosition};
use super::engine::job::Progress;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::forms::{find, workspace_of};
use super::layout::last;
use super::queue::{QueueCounts, QueueKey};
use super::row_source::RowSource;
use super::{BATCH_ROWS, SledStore, confirmations, delivery_rows};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::submission::Submission;
use crate::id::{EventId, FormId, FormRef, SubmissionId, WorkspaceId};
use crate::store::queue::{DUE_CLASSES, KEPT_DAYS, QueueClass, Revival, StoredQueue, WAITING_CLASSES};
use crate::store::{QueueId, Result};

/// Deliveries changed per transaction; each is about four rows.
const BATCH: usize = BATCH_ROWS / 4;

/// Index entries read at once.
const ENTRIES: usize = 1_000;

/// Makes the deliveries of a restored submission pending again.
pub(super) fn resume_submission(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    submission: &Submission,
    now: Timestamp,
) -> Result<()> {
    let Submission { form, id, .. } = *submission;
    let mut events = vec![EventId::of_completed(id)];
    for (key, _) in tx.scan_all(keys::submission_events(form, id))? {
        events.push(last(&key, EventId::from_bytes)?);
    }
    for event in events {
        for delivery in delivery_rows::of_event(tx, workspace, event)? {
            if delivery.status == DeliveryStatus::Paused {
                delivery_rows::replace(tx, workspace, &delivery, &delivery.clone().pending(now, 0))?;
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
    // A form without a workspace is being purged, with its deliveries.
    let Some(workspace) = workspace_of(tx, form)? else { return Ok(Progress::Done) };
    let events = tx.first_keys(keys::submission_events(form, submission), 2)?;
    for key in &events {
        let event = last(key, EventId::from_bytes)?;
        cancel_event(tx, workspace.form(form), event, deleted)?;
        tx.delete(key.clone());
    }
    if events.is_empty() {
        cancel_event(tx, workspace.form(form), EventId::of_completed(submission), deleted)?;
        return Ok(Progress::Done);
    }
    Ok(Progress::More)
}

fn cancel_event(tx: &mut Tx<'_>, form: FormRef, event: EventId, deleted: Timestamp) -> Result<()> {
    let mut is_erased = true;
    for delivery in delivery_rows::of_event(tx, form.workspace, event)? {
        if delivery.event_type.is_deletion() {
            is_erased = false;
            continue;
        }
        tx.delete(keys::body(&delivery));
        // The receiver may have answered with what it got.
        for (key, _) in tx.scan_all(keys::attempts(&delivery))? {
            tx.delete(key);
        }
        delivery_rows::replace(tx, form.workspace, &delivery, &delivery.of_erased(deleted))?;
    }
    if is_erased {
        tx.delete(keys::event(form.id, event));
    }
    Ok(())
}

/// Reads the delivery of an index entry.
fn indexed(tx: &Tx<'_>, workspace: WorkspaceId, entry: &[u8]) -> Result<Option<Delivery>> {
    let IndexPosition { event, target, .. } = IndexPosition::decode(entry)?;
    delivery_rows::read(tx, workspace, event, target)
}

/// Changes the deliveries of `entries` in an index.
fn change_indexed(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    entries: Vec<Vec<u8>>,
    change: impl Fn(&Delivery) -> Delivery,
) -> Result<()> {
    for entry in entries {
        // A delivery that has changed since the entry was read has another one.
        if tx.get(&entry)?.is_none() {
            continue;
        }
        match indexed(tx, workspace, &entry)? {
            Some(delivery) => delivery_rows::replace(tx, workspace, &delivery, &change(&delivery))?,
            None => tx.delete(entry),
        }
    }
    Ok(())
}

/// Erases a batch of what a queue need not keep any more: deliveries that ended long ago, then permits of confirmations.
pub(super) fn prune(tx: &mut Tx<'_>, queue_id: QueueId, now: Timestamp) -> Result<Progress> {
    let (workspace, queue) = (queue_id.workspace, (queue_id.form, queue_id.integration));
    for (class, days) in KEPT_DAYS {
        let ended = Timestamp::from_millis(now.millis() - days * DAY_MILLIS);
        let entries = tx.first_keys(keys::index_until(queue, class, ended), BATCH)?;
        let mut left = BATCH_ROWS;
        for entry in &entries {
            let Some(delivery) = indexed(tx, workspace, entry)? else {
                tx.delete(entry.clone());
                continue;
            };
            let attempts = tx.first_keys(keys::attempts(&delivery), left)?;
            left = left.saturating_sub(attempts.len() + 4);
            attempts.into_iter().for_each(|key| tx.delete(key));
            if left == 0 {
                return Ok(Progress::More);
            }
            erase(tx, workspace, &delivery)?;
        }
        if !entries.is_empty() {
            return Ok(Progress::More);
        }
    }
    confirmations::erase_expired(tx, queue_id.form, now)
}

/// Deletes the rows of a delivery, and of its event if no other delivery has it.
pub(super) fn erase(tx: &mut Tx<'_>, workspace: WorkspaceId, delivery: &Delivery) -> Result<()> {
    delivery_rows::delete(tx, workspace, delivery)?;
    let Delivery { form, event, submission, .. } = *delivery;
    if !tx.has_any(keys::deliveries_of(workspace, event))? {
        tx.delete(keys::event(form, event));
        if let Some(submission) = submission {
            tx.delete(keys::submission_event(form, submission, event));
        }
    }
    Ok(())
}

pub(super) fn recount(tx: &mut Tx<'_>, queue: QueueKey) -> Result<()> {
    let counts = QueueCounts::read(tx, queue)?;
    let count = |class| tx.sum(keys::index(queue, class), ENTRIES, |_| Ok(1));
    let pending = count(QueueClass::Deletion)? + count(QueueClass::Due)?;
    let (paused, dead) = (count(QueueClass::Paused)?, count(QueueClass::Dead)?);
    QueueCounts { pending, paused, dead, ..counts }.put(tx, queue);
    Ok(())
}

impl SledStore {
    /// Makes the queues due that have deliveries to attempt, and goes on with what the end of the process interrupted.
    pub(super) fn resume_queues(&self) -> Result<()> {
        for queue in self.queues(keys::QUEUES)? {
            let Some(form) = self.form(queue.workspace.form(queue.form))? else { continue };
            if form.integration(queue.integration).is_none() {
                self.drop_queue(queue);
                continue;
            }
            if StoredQueue::read(&self.reader, (queue.form, queue.integration))?.revival.is_some() {
                self.continue_revival(queue);
            }
            if let Some(due) = self.first_due(queue)? {
                self.context.claims.wake(queue, due);
            }
        }
        Ok(())
    }

    /// Returns the queues that have a row of a kind, of forms that are not being purged.
    pub(super) fn queues(&self, kind: u8) -> Result<Vec<QueueId>> {
        let (mut queues, mut last) = (Vec::new(), None);
        while let Some((key, _)) = self.reader.scan(keys::after(kind, last), Direction::Ascending, 1)?.pop() {
            let (form, integration) = keys::indexed_queue(&key)?;
            last = Some((form, integration));
            let workspace = workspace_of(&self.reader, form)?;
            queues.extend(workspace.map(|workspace| workspace.form(form).queue(integration)));
        }
        Ok(queues)
    }

    /// Forgets the queue of a deleted integration, in the background. What waited is canceled.
    pub(super) fn drop_queue(&self, queue: QueueId) {
        let QueueId { workspace, form, integration } = queue;
        self.engine.background(move |tx| {
            let Some(form) = find(tx, workspace.form(form))? else { return Ok(Progress::Done) };
            if form.integration(integration).is_some() {
                return Ok(Progress::Done);
            }
            for class in WAITING_CLASSES {
                let entries = tx.first_keys(keys::index((form.id, integration), class), BATCH)?;
                if !entries.is_empty() {
                    let cancel =
                        |delivery: &Delivery| delivery.ended(DeliveryStatus::Canceled, form.updated_at);
                    change_indexed(tx, workspace, entries, cancel)?;
                    return Ok(Progress::More);
                }
            }
            tx.delete(keys::queue(form.id, integration));
            tx.delete(keys::queue_counts(form.id, integration));
            Ok(Progress::Done)
        });
    }

    /// Revives deliveries in the background. Has no effect once that is done.
    pub(super) fn continue_revival(&self, queue: QueueId) {
        let context = Arc::clone(&self.context);
        self.engine.background(move |tx| {
            // The slice before this one is durable.
            context.claims.wake(queue, Timestamp::from_millis(0));
            let key = (queue.form, queue.integration);
            let Some(form) = find(tx, queue.workspace.form(queue.form))? else { return Ok(Progress::Done) };
            let state = StoredQueue::read(tx, key)?;
            let Some(Revival { since, until }) = state.revival else { return Ok(Progress::Done) };
            let mut range = keys::index_from(key, QueueClass::Dead, since);
            range.1 = keys::index_until(key, QueueClass::Dead, until).1;
            let entries = tx.first_keys(range, BATCH)?;
            if entries.is_empty() || form.integration(queue.integration).is_none() {
                StoredQueue { revival: None, ..state }.put(tx, key)?;
                return Ok(Progress::Done);
            }
            change_indexed(tx, queue.workspace, entries, |delivery| delivery.restarted(until, 0))?;
            Ok(Progress::More)
        });
    }

    /// Makes the deliveries of a queue due that wait longer than their schedule says, because the clock was set back.
    pub(super) async fn bring_queue_forward(&self, queue: QueueId, now: Timestamp) -> Result<()> {
        for class in DUE_CLASSES {
            let mut range = keys::index_from((queue.form, queue.integration), class, now);
            loop {
                let from = range.clone();
                let read = move |store: &Self| store.reader.scan(from, Direction::Ascending, ENTRIES);
                let rows = self.scan_on_pool(ENTRIES, read).await?;
                let Some((last, _)) = rows.last() else { break };
                range.0 = Bound::Excluded(last.clone());
                let mut late = Vec::new();
                for (entry, wait) in rows {
                    let due = IndexPosition::decode(&entry)?.at;
                    if due.millis() - now.millis() > delivery_rows::indexed_wait(&wait) {
                        late.push(entry);
                    }
                }
                for batch in late.chunks(BATCH) {
                    let batch = batch.to_vec();
                    let work = move |tx: &mut Tx<'_>| {
                        change_indexed(tx, queue.workspace, batch, |delivery| {
                            delivery.clone().pending(now, 0)
                        })
                    };
                    self.engine.write_as(WriteKind::Reclaim, work).await?;
                }
            }
        }
        Ok(())
    }
}
