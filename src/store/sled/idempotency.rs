//! Idempotency records in the embedded store: written in the same transaction as the result of the request.

use async_trait::async_trait;

use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::{BATCH_ROWS, SledStore, layout};
use crate::clock::Timestamp;
use crate::domain::form::admission::{IdempotencyRecord, Refusal};
use crate::store::{IdempotencyKey, RecordedResponse, Responses, Result};

#[async_trait]
impl Responses for SledStore {
    async fn find_response(
        &self,
        idempotency_key: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Result<String, Refusal>>> {
        let Some(body) = self.reader.get(&layout::idempotency_record(idempotency_key))? else {
            return Ok(None);
        };
        replay(&body, idempotency_key, now)?.map(decode_response).transpose()
    }

    async fn put_response(&self, response: RecordedResponse, now: Timestamp) -> Result<()> {
        self.engine.write(move |tx: &mut Tx<'_>| insert_response(tx, &response, now)).await
    }
}

fn decode_response(replay: ReplayResult) -> Result<Result<String, Refusal>> {
    match replay {
        Ok((_, body)) => {
            let body = String::from_utf8(body);
            body.map(Ok).map_err(|_invalid| layout::undecodable("a recorded response"))
        }
        Err(why) => Ok(Err(why)),
    }
}

/// Records a response.
pub(super) fn insert_response(tx: &mut Tx<'_>, response: &RecordedResponse, at: Timestamp) -> Result<()> {
    insert_record(tx, &response.idempotency_key, 0, response.body.as_bytes(), at)
}

/// Returns the record of an idempotency key, expired or not.
pub(super) fn find_record(
    tx: &Tx<'_>,
    idempotency_key: &IdempotencyKey,
) -> Result<Option<IdempotencyRecord>> {
    tx.get(&layout::idempotency_record(idempotency_key))?
        .map(|body| layout::decode_idempotency_record(&body))
        .transpose()
}

/// An idempotency record, and the extra bytes passed to [`insert_record`].
type Replay = (IdempotencyRecord, Vec<u8>);

/// What a repeated request is answered from, or why it is refused.
pub(super) type ReplayResult = Result<Replay, Refusal>;

/// Looks up the result of an earlier request with the same idempotency key; `None` if there is none.
pub(super) fn find_replay(
    tx: &Tx<'_>,
    idempotency_key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<Option<ReplayResult>> {
    let Some(idempotency_key) = idempotency_key else { return Ok(None) };
    let Some(body) = tx.get(&layout::idempotency_record(idempotency_key))? else { return Ok(None) };
    replay(&body, idempotency_key, now)
}

/// Decodes the record `body` of an earlier request with the same idempotency key; `None` if it has expired.
pub(super) fn replay(
    body: &[u8],
    idempotency_key: &IdempotencyKey,
    now: Timestamp,
) -> Result<Option<ReplayResult>> {
    let (earlier, extra) = layout::split_idempotency_record(body)?;
    let answer = earlier.replay(idempotency_key.body, now);
    Ok(answer.map(|answer| answer.map(|earlier| (earlier, extra.to_vec()))))
}

/// Records the result of a request: the object `made`, and in `extra` what cannot be derived from it later.
pub(super) fn insert_record(
    tx: &mut Tx<'_>,
    idempotency_key: &IdempotencyKey,
    made: u128,
    extra: &[u8],
    at: Timestamp,
) -> Result<()> {
    let record = layout::encode_idempotency_record(&IdempotencyRecord {
        body: idempotency_key.body,
        result: made,
        at,
    });
    tx.put_last(layout::idempotency_record(idempotency_key), [&record, extra].concat());
    tx.put(layout::expiry(idempotency_key, at), Vec::new());
    Ok(())
}

/// Encodes an id of 8 bytes into the lower half of a record's result.
pub(super) fn encode_id(id: [u8; 8]) -> u128 {
    u128::from(u64::from_be_bytes(id))
}

/// Deletes a batch of records that have expired at `now`.
pub(super) fn erase_expired(tx: &mut Tx<'_>, now: Timestamp) -> Result<Progress> {
    let expired = tx.scan(layout::before(layout::EXPIRIES, now), Direction::Ascending, BATCH_ROWS / 2)?;
    for (entry, _) in &expired {
        let (record, expires) = layout::expired_record(entry)?;
        let body = tx.get(&record)?.map(|body| layout::decode_idempotency_record(&body)).transpose()?;
        // The key may have been used again since: the newer record has its own expiry entry.
        if body.is_some_and(|body| layout::expires_at(body.at) == expires) {
            tx.delete(record);
        }
        tx.delete(entry.clone());
    }
    Ok(if expired.is_empty() { Progress::Done } else { Progress::More })
}
