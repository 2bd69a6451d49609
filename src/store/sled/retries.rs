//! Idempotency keys in the embedded store: written with what the request made, in the same durable step.

use super::engine::tx::{Direction, Tx};
use super::layout;
use crate::clock::Timestamp;
use crate::domain::admission::{Refusal, Remembered};
use crate::store::{Retry, StoreError};

/// What an earlier request with this idempotency key did, also if that has expired.
pub(super) fn recall(tx: &Tx<'_>, retry: &Retry) -> Result<Option<Remembered>, StoreError> {
    tx.get(&layout::remembered(retry))?.map(|body| layout::decode_remembered(&body)).transpose()
}

/// What an earlier request did, and what [`remember`] was given besides.
type Earlier = (Remembered, Vec<u8>);

/// What an earlier request with the same idempotency key answers to this one; `None` if there was none.
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

/// Remembers that the request `retry` made the object `made`, and was `given` what is not to be had from it later; and
/// sweeps some of what has expired.
pub(super) fn remember(
    tx: &mut Tx<'_>,
    retry: &Retry,
    made: u128,
    given: &[u8],
    at: Timestamp,
) -> Result<(), StoreError> {
    forget_expired(tx, at)?;
    let memory = layout::encode_remembered(&Remembered { body: retry.body, made, at });
    tx.put_last(layout::remembered(retry), [&memory, given].concat());
    tx.put(layout::expiry(retry, at), Vec::new());
    Ok(())
}

/// Sweeps two expired memories. Each new one calls this, so that they never outgrow what a day brings.
fn forget_expired(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    for (entry, _) in tx.scan(layout::expired(now), Direction::Ascending, 2)? {
        let (memory, expires) = layout::swept(&entry)?;
        let body = tx.get(&memory)?.map(|body| layout::decode_remembered(&body)).transpose()?;
        // The key may have been used again since: that memory has an entry of its own.
        if body.is_some_and(|body| layout::expires(body.at) == expires) {
            tx.delete(memory);
        }
        tx.delete(entry);
    }
    Ok(())
}
