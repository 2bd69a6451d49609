//! Records of requests with idempotency keys.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::PostgresStore;
use super::transaction::Tx;
use crate::clock::Timestamp;
use crate::domain::form::admission::{EarlierRequest, IDEMPOTENCY_RECORD_MILLIS, IdempotencyRecord};
use crate::store::step::Stop;
use crate::store::{Idempotency, IdempotencyKey, Result, StoreError};

#[async_trait]
impl Idempotency for PostgresStore {
    async fn find_record(&self, key: &IdempotencyKey, now: Timestamp) -> Result<EarlierRequest> {
        self.read(|session| async move { find_record(&session, Some(key), now).await }).await
    }

    async fn put_response(&self, key: IdempotencyKey, response: String, now: Timestamp) -> Result<()> {
        let (key, response) = (&key, response.as_bytes());
        self.write(|tx| async move { insert_record(&tx, Some(key), 0, response, now).await }).await
    }
}

/// Finds the record of an earlier request with the same idempotency key, or why the key cannot be reused.
pub(super) async fn find_record(
    session: &Tx,
    idempotency_key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<EarlierRequest> {
    let Some(key) = idempotency_key else { return Ok(None) };
    let sql = "SELECT id, body, result, at, extra FROM idempotency_records WHERE id = $1";
    let found = session.query_opt(sql, &[&key.to_bytes()]).await?;
    Ok(found.map(|row| record(&row)).transpose()?.and_then(|record| record.replay(key.body, now)))
}

/// Reads a record from a row of all columns but the form's.
pub(super) fn record(row: &Row) -> Result<IdempotencyRecord> {
    let unknown = |_length| StoreError::Undecodable("an idempotency record".to_owned());
    let number = |bytes: &[u8]| bytes.try_into().map(u128::from_be_bytes).map_err(unknown);
    Ok(IdempotencyRecord {
        body: number(row.get(1))?,
        result: number(row.get(2))?,
        at: row.get(3),
        extra: row.get(4),
    })
}

/// Stops a step if there was an earlier request with the same idempotency key; `read` reads its result from the record.
pub(super) async fn replay<T>(
    tx: &Tx,
    idempotency_key: Option<&IdempotencyKey>,
    now: Timestamp,
    read: impl AsyncFnOnce(IdempotencyRecord) -> Result<T>,
) -> Result<(), Stop<T>> {
    match find_record(tx, idempotency_key, now).await? {
        Some(record) => Err(Stop::Replayed(Box::new(read(record?).await?))),
        None => Ok(()),
    }
}

/// Records the result of a request, if it has an idempotency key: in `made` the object or its state, if a replay needs it, and
/// in `extra` what cannot be derived from it later. Replaces a record that has expired.
pub(super) async fn insert_record(
    tx: &Tx,
    idempotency_key: Option<&IdempotencyKey>,
    made: u128,
    extra: &[u8],
    at: Timestamp,
) -> Result<()> {
    let Some(key) = idempotency_key else { return Ok(()) };
    insert_records(tx, &[(key, made, at)], extra).await
}

/// Records the results of requests; see [`insert_record`].
pub(super) async fn insert_records(
    tx: &Tx,
    records: &[(&IdempotencyKey, u128, Timestamp)],
    extra: &[u8],
) -> Result<()> {
    let Some((.., at)) = records.first() else { return Ok(()) };
    let ids: Vec<_> = records.iter().map(|(key, ..)| key.to_bytes()).collect();
    let forms: Vec<_> = records.iter().map(|(key, ..)| key.held_form()).collect();
    let bodies: Vec<_> = records.iter().map(|(key, ..)| key.body.to_be_bytes().to_vec()).collect();
    let results: Vec<_> = records.iter().map(|(_, result, _)| result.to_be_bytes().to_vec()).collect();
    let times: Vec<_> = records.iter().map(|(.., at)| *at).collect();
    let expired = at.millis() - IDEMPOTENCY_RECORD_MILLIS;
    let sql = "INSERT INTO idempotency_records (id, form, body, result, at, extra)
               SELECT unnest($1::BYTEA[]), unnest($2::BYTEA[]), unnest($3::BYTEA[]), unnest($4::BYTEA[]),
                   unnest($5::BIGINT[]), $6
               ON CONFLICT (id) DO UPDATE SET body = excluded.body, result = excluded.result, at = excluded.at,
                   extra = excluded.extra WHERE idempotency_records.at <= $7";
    let written = tx.execute(sql, &[&ids, &forms, &bodies, &results, &times, &extra, &expired]).await?;
    if written < records.len() as u64 {
        // Another request with the same key has just been carried out: the next attempt replays it.
        return Err(StoreError::Interrupted("an idempotency key is used twice".to_owned()));
    }
    Ok(())
}

/// Deletes a batch of records that have expired at `now`. Returns how many.
pub(super) async fn erase_expired(tx: &Tx, now: Timestamp, batch: i64) -> Result<u64> {
    let sql = "DELETE FROM idempotency_records WHERE id IN
               (SELECT id FROM idempotency_records WHERE at <= $1 ORDER BY at LIMIT $2)";
    tx.execute(sql, &[&(now.millis() - IDEMPOTENCY_RECORD_MILLIS), &batch]).await
}
