//! Idempotency records in the embedded store: written in the same transaction as the result of the request.

use async_trait::async_trait;

use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::row_source::RowSource;
use super::{BATCH_ROWS, SledStore, Stop, layout};
use crate::clock::Timestamp;
use crate::domain::form::admission::{EarlierRequest, IdempotencyRecord};
use crate::store::{Idempotency, IdempotencyKey, Result};

#[async_trait]
impl Idempotency for SledStore {
    async fn find_record(&self, key: &IdempotencyKey, now: Timestamp) -> Result<EarlierRequest> {
        find_record(&self.reader, Some(key), now)
    }

    async fn put_response(&self, key: IdempotencyKey, response: String, now: Timestamp) -> Result<()> {
        let work = move |tx: &mut Tx<'_>| {
            insert_record(tx, Some(&key), 0, response.into_bytes(), now);
            Ok(())
        };
        self.engine.write(work).await
    }
}

/// Finds the record of an earlier request with the same idempotency key, or why the key cannot be reused.
pub(super) fn find_record(
    rows: &impl RowSource,
    idempotency_key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<EarlierRequest> {
    let Some(idempotency_key) = idempotency_key else { return Ok(None) };
    let key = layout::idempotency_record(idempotency_key);
    let record = rows.read(&key, layout::decode_idempotency_record)?;
    Ok(record.and_then(|record| record.replay(idempotency_key.body, now)))
}

/// Stops a step if there was an earlier request with the same idempotency key; `read` reads its result from the record.
pub(super) fn replay<T>(
    rows: &impl RowSource,
    idempotency_key: Option<&IdempotencyKey>,
    now: Timestamp,
    read: impl FnOnce(IdempotencyRecord) -> Result<T>,
) -> Result<(), Stop<T>> {
    match find_record(rows, idempotency_key, now)? {
        Some(record) => Err(Stop::Replayed(Box::new(read(record?)?))),
        None => Ok(()),
    }
}

/// Records the result of a request, if it has an idempotency key: in `made` the object or its state, if a replay needs it, and
/// in `extra` what cannot be derived from it later.
pub(super) fn insert_record(
    tx: &mut Tx<'_>,
    idempotency_key: Option<&IdempotencyKey>,
    made: u128,
    extra: Vec<u8>,
    at: Timestamp,
) {
    let Some(idempotency_key) = idempotency_key else { return };
    let record = IdempotencyRecord { body: idempotency_key.body, result: made, at, extra };
    tx.put_last(layout::idempotency_record(idempotency_key), layout::encode_idempotency_record(&record));
    tx.put(layout::expiry(idempotency_key, at), Vec::new());
}

/// Deletes a batch of records that have expired at `now`.
pub(super) fn erase_expired(tx: &mut Tx<'_>, now: Timestamp) -> Result<Progress> {
    let expired = tx.scan(layout::before(layout::EXPIRIES, now), Direction::Ascending, BATCH_ROWS / 2)?;
    for (entry, _) in &expired {
        let (record, expires) = layout::expired_record(entry)?;
        let body = tx.read(&record, layout::decode_idempotency_record)?;
        // The key may have been used again since: the newer record has its own expiry entry.
        if body.is_some_and(|body| layout::expires_at(body.at) == expires) {
            tx.delete(record);
        }
        tx.delete(entry.clone());
    }
    Ok(if expired.is_empty() { Progress::Done } else { Progress::More })
}
