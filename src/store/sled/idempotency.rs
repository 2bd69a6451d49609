//! Idempotency keys in the embedded store: written with what the request made, in the same durable step.

use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::{SLICE, layout};
use crate::clock::Timestamp;
use crate::domain::form::admission::{IdempotencyRecord, Refusal};
use crate::store::{Retry, StoreError};

/// Returns the record of the idempotency key of `retry`, also if it has expired.
pub(super) fn recall(tx: &Tx<'_>, retry: &Retry) -> Result<Option<IdempotencyRecord>, StoreError> {
    tx.get(&layout::remembered(retry))?.map(|body| layout::decode_remembered(&body)).transpose()
}

/// The record of an earlier request, and the extra bytes that [`remember`] was given.
type Earlier = (IdempotencyRecord, Vec<u8>);

/// Answers from the record of the same idempotency key; `None` if there is none.
pub(super) fn earlier(
    tx: &Tx<'_>,
    retry: Option<&Retry>,
    now: Timestamp,
) -> Result<Option<Result<Earlier, Refusal>>, StoreError> {
    let Some(retry) = retry else { return Ok(None) };
    let Some(body) = tx.get(&layout::remembered(retry))? else { return Ok(None) };
    let (earlier, given) = layout::split_remembered(&body)?;
    let answer = earlier.replay(retry.body, now);
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
    let record = layout::encode_remembered(&IdempotencyRecord { body: retry.body, result: made, at });
    tx.put_last(layout::remembered(retry), [&record, given].concat());
    tx.put(layout::expiry(retry, at), Vec::new());
    Ok(())
}

/// Erases some of the records that have expired at `now`.
pub(super) fn erase_expired(tx: &mut Tx<'_>, now: Timestamp) -> Result<Progress, StoreError> {
    let expired = tx.scan(layout::expired(now), Direction::Ascending, SLICE / 2)?;
    for (entry, _) in &expired {
        let (record, expires) = layout::swept(entry)?;
        let body = tx.get(&record)?.map(|body| layout::decode_remembered(&body)).transpose()?;
        // The key may have been used again since: that record has an entry of its own.
        if body.is_some_and(|body| layout::expires(body.at) == expires) {
            tx.delete(record);
        }
        tx.delete(entry.clone());
    }
    Ok(if expired.is_empty() { Progress::Done } else { Progress::More })
}
