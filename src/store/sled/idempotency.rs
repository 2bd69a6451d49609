//! Idempotency keys in the embedded store: written with what the request made, in the same durable step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::engine::Engine;
use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::{SLICE, layout};
use crate::clock::Timestamp;
use crate::domain::admission::{Refusal, Remembered};
use crate::store::{Retry, StoreError};

/// Returns the record of the idempotency key of `retry`, also if it has expired.
pub(super) fn recall(tx: &Tx<'_>, retry: &Retry) -> Result<Option<Remembered>, StoreError> {
    tx.get(&layout::remembered(retry))?.map(|body| layout::decode_remembered(&body)).transpose()
}

/// The record of an earlier request, and the extra bytes that [`remember`] was given.
type Earlier = (Remembered, Vec<u8>);

/// Answers from the record of the same idempotency key; `None` if there is none.
pub(super) fn earlier(
    tx: &Tx<'_>,
    retry: Option<&Retry>,
    now: Timestamp,
) -> Result<Option<Result<Earlier, Refusal>>, StoreError> {
    let Some(retry) = retry else { return Ok(None) };
    let Some(body) = tx.get(&layout::remembered(retry))? else { return Ok(None) };
    let (earlier, given) = layout::split_remembered(&body)?;
    let answer = earlier.answer(retry.body, now);
    Ok(answer.map(|answer| answer.map(|earlier| (earlier, given.to_vec()))))
}

/// Remembers that the request `retry` made the object `made`, and was `given` what is not to be had from it later.
pub(super) fn remember(
    tx: &mut Tx<'_>,
    retry: &Retry,
    made: u128,
    given: &[u8],
    at: Timestamp,
) -> Result<(), StoreError> {
    let record = layout::encode_remembered(&Remembered { body: retry.body, made, at });
    tx.put_last(layout::remembered(retry), [&record, given].concat());
    tx.put(layout::expiry(retry, at), Vec::new());
    Ok(())
}

/// Erases expired records in the background while new ones come, so that they never outgrow what a day brings.
pub(super) struct Sweeper {
    is_running: AtomicBool,
    /// Before this moment there is nothing to erase, in milliseconds.
    not_before: AtomicI64,
}

/// Sweeps begin at most this often.
const PAUSE_MILLIS: i64 = 1_000;

impl Sweeper {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { is_running: AtomicBool::new(false), not_before: AtomicI64::new(i64::MIN) })
    }

    /// Begins to erase what has expired at `now`, if there may be anything and nobody does so already.
    pub(super) fn begin(self: &Arc<Self>, engine: &Engine, now: Timestamp) {
        let is_due = now.millis() >= self.not_before.load(Ordering::Relaxed);
        if is_due && !self.is_running.swap(true, Ordering::Relaxed) {
            let sweep = Sweep { sweeper: Arc::clone(self), now };
            engine.background(move |tx| sweep.slice(tx));
        }
    }
}

/// One sweep; dropping it lets the next one begin.
struct Sweep {
    sweeper: Arc<Sweeper>,
    now: Timestamp,
}

impl Sweep {
    fn slice(&self, tx: &mut Tx<'_>) -> Result<Progress, StoreError> {
        let expired = tx.scan(layout::expired(self.now), Direction::Ascending, SLICE / 2)?;
        for (entry, _) in &expired {
            let (record, expires) = layout::swept(entry)?;
            let body = tx.get(&record)?.map(|body| layout::decode_remembered(&body)).transpose()?;
            // The key may have been used again since: that record has an entry of its own.
            if body.is_some_and(|body| layout::expires(body.at) == expires) {
                tx.delete(record);
            }
            tx.delete(entry.clone());
        }
        if expired.len() == SLICE / 2 {
            return Ok(Progress::More);
        }
        let soon = Timestamp::from_millis(self.now.millis() + PAUSE_MILLIS);
        let next = tx.scan(layout::expiries_from(self.now), Direction::Ascending, 1)?.pop();
        let next = next
            .map_or(Ok(layout::expires(self.now)), |(entry, _)| layout::swept(&entry).map(|swept| swept.1))?;
        self.sweeper.not_before.store(next.max(soon).millis(), Ordering::Relaxed);
        Ok(Progress::Done)
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.sweeper.is_running.store(false, Ordering::Relaxed);
    }
}
