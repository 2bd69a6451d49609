//! Queues: which exist, and what is due in one.

use std::ops::Bound;
use std::sync::Arc;

use super::delivery_layout::{self as keys, DUE_CLASSES, QueueClass};
use super::delivery_rows::{DeliveryRow, IndexValue};
use super::engine::tx::{Direction, KeyRange, Tx};
use super::queue_state::StoredQueue;
use super::queue_writer::QueueContext;
use super::{BATCH_ROWS, SledStore, delivery_attempts, delivery_upkeep, events, layout, outbox};
use crate::clock::Timestamp;
use crate::domain::delivery::lifecycle::EventHead;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::id::{EventId, FormId, WorkspaceId};
use crate::store::{DueDelivery, QueueBatch, QueueId, Result};

/// Index entries read of a paused queue to find leases: more than the attempts that one can have in flight.
const LEASE_ENTRIES: usize = 500;

impl SledStore {
    /// Lists the queues with deliveries that wait, and continues revivals. Reads a few rows for each queue.
    pub(super) fn read_queues(&self) -> Result<Vec<(QueueId, Timestamp)>> {
        let (mut found, mut range) = (Vec::new(), keys::queues());
        let mut last_event = (FormId::ZERO, 0);
        loop {
            let rows = self.reader.scan(range.clone(), Direction::Ascending, BATCH_ROWS)?;
            let Some((last, _)) = rows.last() else { return Ok(found) };
            range.0 = Bound::Excluded(last.clone());
            for (key, body) in rows {
                let (form, integration) = keys::listed_queue(&key)?;
                // A form without a workspace is being purged.
                let Some(workspace) = self.reader.get(&layout::form_workspace(form))? else { continue };
                let workspace = layout::listed_workspace(&workspace)?;
                if last_event.0 != form {
                    last_event = (form, outbox::last_row(&self.reader, form)?.map_or(0, |row| row.last()));
                }
                let (queue, state) = (QueueId { workspace, form, integration }, StoredQueue::decode(&body)?);
                if state.revival.is_some() {
                    self.continue_revival(queue);
                }
                if let Some(due) = self.first_due(queue, &state, last_event.1)? {
                    found.push((queue, due));
                }
            }
        }
    }

    /// Revives deliveries in the background. Has no effect once that is done.
    pub(super) fn continue_revival(&self, queue: QueueId) {
        let changed_forms = Arc::clone(&self.changed_forms);
        self.engine.background((), move |(), tx| {
            // The slice before this one is durable.
            changed_forms.record(queue.workspace, queue.form);
            delivery_upkeep::revive(tx, queue)
        });
    }

    /// Returns the queues of a form whose integrations are enabled.
    pub(super) fn enabled_queues(&self, workspace: WorkspaceId, form: FormId) -> Result<Vec<QueueId>> {
        let Some(found) = self.form(workspace, form)? else { return Ok(Vec::new()) };
        let enabled = found.integrations.iter().filter(|one| one.enabled);
        Ok(enabled.map(|one| QueueId { workspace, form, integration: one.id }).collect())
    }

    /// Returns a time before which nothing of a queue is due, and the last event of the outbox is `last`; `None` if nothing
    /// waits.
    fn first_due(&self, queue: QueueId, state: &StoredQueue, last: u64) -> Result<Option<Timestamp>> {
        let Some(form) = self.form(queue.workspace, queue.form)? else { return Ok(None) };
        let is_dropped = form.integration(queue.integration).is_none();
        let is_form_waiting = form.deleted_at.is_some();
        if is_dropped || state.position < last && !is_form_waiting {
            return Ok(Some(Timestamp::from_millis(0)));
        }
        self.next_due(queue, sendable_classes(&form))
    }

    /// Returns when the first delivery of these classes is due.
    fn next_due(&self, queue: QueueId, classes: &[QueueClass]) -> Result<Option<Timestamp>> {
        let mut first = None;
        for class in classes {
            let range = keys::index(keys::queue_key(queue), *class);
            let row = self.reader.scan(range, Direction::Ascending, 1)?.pop();
            let due = row.map(|(key, _)| keys::index_position(&key)).transpose()?.map(|(due, _)| due);
            first = first.into_iter().chain(due).min();
        }
        Ok(first)
    }

    /// Loads at most `limit` due deliveries of a queue; `None` if its form or integration no longer exists.
    pub(super) async fn load_due(
        &self,
        queue: QueueId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Option<QueueBatch>> {
        let read = move |store: &Self| store.read_due(queue, now, limit);
        let Some(mut loaded) = self.scan_on_pool(limit, read).await? else { return Ok(None) };
        if !loaded.expired.is_empty() || loaded.can_advance {
            let (context, expired) = (self.queue_context(), std::mem::take(&mut loaded.expired));
            let settle = move |tx: &mut Tx<'_>| {
                delivery_attempts::settle(tx, &context, queue, expired, limit.min(BATCH_ROWS), now)
            };
            self.engine.write(settle).await?;
        }
        let mut batch = loaded.batch;
        if batch.due.is_empty() {
            batch.next_due = match (loaded.has_more, loaded.next_due) {
                (true, _) => Some(now),
                (false, Some(next)) => next,
                (false, None) => self.next_due(queue, sendable_classes(&batch.form))?,
            };
        }
        Ok(Some(batch))
    }

    fn read_due(&self, queue: QueueId, now: Timestamp, limit: usize) -> Result<Option<LoadedQueue>> {
        let Some(form) = self.form(queue.workspace, queue.form)? else { return Ok(None) };
        let Some(is_enabled) = form.integration(queue.integration).map(|one| one.enabled) else {
            return Ok(None);
        };
        let state = StoredQueue::read(&self.reader, queue.form, queue.integration)?;
        let (position, paced_until) = (state.position, state.paced_until.filter(|until| *until > now));
        let is_paused = !is_enabled || state.health.paused.is_some();
        let batch = QueueBatch { form, state: state.into_state(), due: Vec::new(), next_due: None };
        let mut loaded =
            LoadedQueue { batch, expired: Vec::new(), can_advance: false, has_more: false, next_due: None };
        if is_paused {
            self.read_leases(queue, now, &mut loaded)?;
            return Ok(Some(loaded));
        }
        if paced_until.is_some() {
            loaded.next_due = Some(paced_until);
            return Ok(Some(loaded));
        }
        for class in sendable_classes(&loaded.batch.form) {
            let range = keys::index_until(keys::queue_key(queue), *class, now);
            self.read_retries(queue, range, limit, &mut loaded)?;
        }
        if loaded.batch.form.deleted_at.is_none() {
            self.read_fresh(queue, position, limit, &mut loaded)?;
        }
        Ok(Some(loaded))
    }

    /// Adds the attempts of a paused queue whose leases have ended, and sets when the next lease ends. Reads so many entries
    /// around `now` that it finds them unless very many retries are due at the same time; those are found once it is resumed.
    fn read_leases(&self, queue: QueueId, now: Timestamp, loaded: &mut LoadedQueue) -> Result<()> {
        let mut next = None;
        for class in DUE_CLASSES {
            let of_queue = keys::queue_key(queue);
            let (past, future) =
                (keys::index_until(of_queue, class, now), keys::index_from(of_queue, class, now));
            for (key, value) in self.reader.scan(past, Direction::Descending, LEASE_ENTRIES)? {
                if IndexValue::decode(&value)? == IndexValue::InFlight {
                    loaded.expired.push(keys::index_position(&key)?.1);
                }
            }
            for (key, value) in self.reader.scan(future, Direction::Ascending, LEASE_ENTRIES)? {
                let (end, _) = keys::index_position(&key)?;
                if IndexValue::decode(&value)? == IndexValue::InFlight && end > now {
                    next = next.into_iter().chain([end]).min();
                    break;
                }
            }
        }
        loaded.has_more = loaded.expired.len() > BATCH_ROWS / 4;
        loaded.expired.truncate(BATCH_ROWS / 4);
        loaded.next_due = Some(next);
        Ok(())
    }

    /// Adds the deliveries with these entries in the index, and those whose leases have ended.
    fn read_retries(
        &self,
        queue: QueueId,
        range: KeyRange,
        limit: usize,
        loaded: &mut LoadedQueue,
    ) -> Result<()> {
        let left = limit - loaded.batch.due.len();
        for (key, value) in self.reader.scan(range, Direction::Ascending, left)? {
            let (_, event) = keys::index_position(&key)?;
            if IndexValue::decode(&value)? == IndexValue::InFlight {
                loaded.expired.push(event);
                continue;
            }
            let row = DeliveryRow::read(&self.reader, queue.form, event, queue.integration)?;
            if let Some(row) = row.filter(|row| row.delivery.status == DeliveryStatus::Pending) {
                loaded.batch.due.push(self.due(row)?);
            }
        }
        Ok(())
    }

    /// Adds deliveries of the outbox.
    fn read_fresh(
        &self,
        queue: QueueId,
        position: u64,
        limit: usize,
        loaded: &mut LoadedQueue,
    ) -> Result<()> {
        let left = limit - loaded.batch.due.len();
        let waiting = outbox::read_waiting(&self.reader, keys::queue_key(queue), position, left)?;
        for entry in &waiting.entries {
            let head = EventHead::of_completed(queue.form, entry.submission);
            // One that was canceled or redelivered by hand has a row already.
            if self.reader.get(&keys::delivery(queue.form, head.id, queue.integration))?.is_none() {
                let row = DeliveryRow::new(Delivery::new(head, queue.integration), entry.sequence);
                loaded.batch.due.push(self.due(row)?);
            }
        }
        let is_unchanged = loaded.batch.due.is_empty();
        loaded.can_advance = is_unchanged && waiting.read_to > position;
        loaded.has_more = is_unchanged && !waiting.is_end;
        Ok(())
    }

    /// Adds to a delivery what it sends.
    pub(super) fn due(&self, row: DeliveryRow) -> Result<DueDelivery> {
        let events::ReadEvent { event, is_in_trash } =
            events::read(&self.reader, &row.delivery, row.sequence)?;
        let body = match row.delivery.attempts {
            0 => None,
            _ => self.reader.get(&row.body_key())?,
        };
        Ok(DueDelivery { delivery: row.delivery, event, is_in_trash, body })
    }

    pub(super) fn queue_context(&self) -> QueueContext {
        QueueContext {
            forms: Arc::clone(&self.forms),
            random: Arc::clone(&self.random),
            retry_schedule: self.retry_schedule.clone(),
        }
    }
}

/// The result of reading a queue.
struct LoadedQueue {
    batch: QueueBatch,
    /// Events of attempts whose leases have ended.
    expired: Vec<EventId>,
    /// Whether the position can move over events that need no attempt.
    can_advance: bool,
    /// Whether more may be due although nothing was found.
    has_more: bool,
    /// When the queue is to be loaded again, if it is paused or paced; else that depends on what is due.
    next_due: Option<Option<Timestamp>>,
}

/// Classes of deliveries that may be attempted: of a form in the trash, deletions alone.
fn sendable_classes(form: &Form) -> &'static [QueueClass] {
    match form.deleted_at {
        Some(_) => &DUE_CLASSES[..1],
        None => &DUE_CLASSES,
    }
}
