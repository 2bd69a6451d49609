//! Counters of a form, and its locks, which are their rows.

use super::transaction::Tx;
use crate::id::FormId;
use crate::store::{Result, StoreError};

/// Rows of counters that a form has.
pub(super) const SHARDS: i16 = 8;

/// Which rows to lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// All of them: nobody else sees the form meanwhile. To change it.
    Form,
    /// The first one, for what must see what has happened to the form in order, but not change the form itself.
    Events,
}

/// Locks a form until the end of the transaction, once no other transaction holds it. Call it before reading the form.
pub(super) async fn lock(tx: &Tx, form: FormId, lock: Lock) -> Result<()> {
    let last: i16 = match lock {
        Lock::Form => SHARDS,
        Lock::Events => 0,
    };
    let sql = "SELECT 1 FROM counters WHERE form = $1 AND shard <= $2 ORDER BY shard FOR UPDATE";
    tx.query(sql, &[&form, &last]).await.map(drop)
}

/// Creates the counters of a new form; `conflict` says what to do if they exist.
pub(super) async fn insert(tx: &Tx, form: FormId, conflict: &str) -> Result<()> {
    let shards: Vec<i16> = (0..SHARDS).collect();
    let sql = format!("INSERT INTO counters (form, shard) SELECT $1, unnest($2::SMALLINT[]) {conflict}");
    tx.execute(&sql, &[&form, &shards]).await.map(drop)
}

/// The number of completed submissions outside the trash.
pub(super) async fn responses(tx: &Tx, form: FormId) -> Result<u64> {
    let sql = "SELECT coalesce(sum(responses), 0)::BIGINT FROM counters WHERE form = $1";
    tx.count(sql, &[&form]).await
}

/// Adds to the number of completed submissions. The rows of a form may be negative; their sum is not.
pub(super) async fn add_responses(tx: &Tx, form: FormId, by: i64) -> Result<()> {
    let sql = "UPDATE counters SET responses = responses + $2 WHERE form = $1 AND shard = 0";
    tx.execute(sql, &[&form, &by]).await.map(drop)
}

/// Takes the next `count` numbers of events, which have no gaps, and returns the first of them.
pub(super) async fn next_events(tx: &Tx, form: FormId, count: usize) -> Result<u64> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let sql = "UPDATE counters SET sequence = sequence + $2 WHERE form = $1 AND shard = 0 RETURNING sequence";
    let missing = || StoreError::Missing(format!("the counters of {form}"));
    let last: i64 = tx.query_opt(sql, &[&form, &count]).await?.ok_or_else(missing)?.get(0);
    Ok(u64::try_from(last - count + 1).unwrap_or(1))
}
