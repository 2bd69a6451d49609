//! The rows of a queue.

use super::delivery_layout as keys;
use super::engine::tx::Tx;
use super::layout::{self, undecodable};
use super::row_source::RowSource;
use crate::clock::Timestamp;
use crate::domain::delivery::DeliveryStatus;
use crate::id::{FormId, IntegrationId};
use crate::store::Result;
use crate::store::queue::StoredQueue;

/// The part of a queue's id that its keys have.
pub(super) type QueueKey = (FormId, IntegrationId);

impl StoredQueue {
    pub(super) fn read(rows: &impl RowSource, (form, integration): QueueKey) -> Result<Self> {
        let decode = |body: &[u8]| layout::from_json("the state of a queue", body);
        Ok(rows.read(&keys::queue(form, integration), decode)?.unwrap_or_default())
    }

    pub(super) fn put(&self, tx: &mut Tx<'_>, (form, integration): QueueKey) -> Result<()> {
        tx.put(keys::queue(form, integration), layout::to_json(self)?);
        Ok(())
    }
}

const HOURS: usize = 24;

const HOUR_MILLIS: i64 = 3_600_000;

/// Counters of a queue, changed in the same write as its deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct QueueCounts {
    /// Deliveries that wait for an attempt.
    pub(super) pending: u64,
    /// Deliveries whose submission is in the trash.
    pub(super) paused: u64,
    pub(super) dead: u64,
    /// Changes of the form and its submissions that a file has to show, other than new submissions.
    pub(super) changes: u64,
    /// Number of the last hour, since 1970, in which one was delivered.
    pub(super) hour: u64,
    /// Deliveries by hour of the day.
    pub(super) delivered: [u32; HOURS],
}

impl QueueCounts {
    pub(super) fn read(rows: &impl RowSource, (form, integration): QueueKey) -> Result<Self> {
        let Some(body) = rows.get(&keys::queue_counts(form, integration))? else {
            return Ok(Self::default());
        };
        let unknown = || undecodable("the counters of a queue");
        let (numbers, delivered) = body.split_first_chunk::<40>().ok_or_else(unknown)?;
        let mut numbers = numbers.as_chunks().0.iter().map(|number| u64::from_be_bytes(*number));
        let mut next = || numbers.next().unwrap_or_default();
        let mut counts = Self {
            pending: next(),
            paused: next(),
            dead: next(),
            changes: next(),
            hour: next(),
            ..Self::default()
        };
        let (delivered, []) = delivered.as_chunks() else { return Err(unknown()) };
        for (count, bytes) in counts.delivered.iter_mut().zip(delivered) {
            *count = u32::from_be_bytes(*bytes);
        }
        Ok(counts)
    }

    pub(super) fn put(&self, tx: &mut Tx<'_>, (form, integration): QueueKey) {
        let numbers = [self.pending, self.paused, self.dead, self.changes, self.hour].map(u64::to_be_bytes);
        let delivered = self.delivered.map(u32::to_be_bytes);
        let body = [numbers.as_flattened(), delivered.as_flattened()].concat();
        tx.put(keys::queue_counts(form, integration), body);
    }

    /// Counts that a delivery went from one status to another; `None` before it exists and after it is erased.
    pub(super) fn count(
        &mut self,
        from: Option<DeliveryStatus>,
        to: Option<DeliveryStatus>,
        at: Option<Timestamp>,
    ) {
        if let Some(count) = from.and_then(|status| self.of(status)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = to.and_then(|status| self.of(status)) {
            *count += 1;
        }
        if from != to && to == Some(DeliveryStatus::Delivered) {
            let hour = at.map_or(0, hour_of).max(self.hour);
            self.forget_before(hour);
            self.hour = hour;
            self.delivered[hour as usize % HOURS] += 1;
        }
    }

    fn of(&mut self, status: DeliveryStatus) -> Option<&mut u64> {
        match status {
            DeliveryStatus::Pending | DeliveryStatus::InFlight => Some(&mut self.pending),
            DeliveryStatus::Paused => Some(&mut self.paused),
            DeliveryStatus::Dead => Some(&mut self.dead),
            DeliveryStatus::Delivered | DeliveryStatus::Canceled | DeliveryStatus::Skipped => None,
        }
    }

    /// Deliveries within the 24 hours before `now`, counted by the hour.
    pub(super) fn delivered_since_yesterday(mut self, now: Timestamp) -> u64 {
        self.forget_before(hour_of(now).max(self.hour));
        self.delivered.iter().map(|count| u64::from(*count)).sum()
    }

    /// Empties the hours that are a day before those up to `hour`.
    fn forget_before(&mut self, hour: u64) {
        for past in (self.hour + 1..=hour).take(HOURS) {
            self.delivered[past as usize % HOURS] = 0;
        }
    }
}

fn hour_of(time: Timestamp) -> u64 {
    u64::try_from(time.millis() / HOUR_MILLIS).unwrap_or(0)
}
