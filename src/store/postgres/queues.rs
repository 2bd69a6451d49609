//! Queues: the deliveries of one integration.

use tokio_postgres::Row;

use super::PostgresStore;
use super::delivery_rows::{self, IS_CLAIMED, number};
use super::transaction::{Params, Tx};
use super::values::json;
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::id::{DeliveryTarget, EventId};
use crate::store::json::to_text;
use crate::store::queue::{QueueClass, Revival, StoredQueue};
use crate::store::{QueueId, Result};

/// Deliveries that are changed in one transaction.
pub(super) const BATCH: i64 = 200;

/// The deliveries of a row of `queues`.
pub(super) const OF_QUEUE: &str =
    "deliveries.form = queues.form AND deliveries.integration = queues.integration";

/// The name of a [`StoredQueue`] in an error.
const STATE: &str = "the state of a queue";

/// Creates the queues of integrations that are not among `earlier` ones, and records which of those were removed.
pub(super) async fn create(tx: &Tx, form: &Form, earlier: &[Integration]) -> Result<()> {
    let is_earlier = |id| earlier.iter().any(|one| one.id == id);
    let new: Vec<_> = form.integrations.iter().map(|one| one.id).filter(|id| !is_earlier(*id)).collect();
    let is_removed = |id| form.integration(id).is_none();
    let removed: Vec<_> = earlier.iter().map(|one| one.id).filter(|id| is_removed(*id)).collect();
    if !new.is_empty() {
        let sql =
            "INSERT INTO queues (form, workspace, data, integration) SELECT $1, $2, $3, unnest($4::BYTEA[])";
        let data = to_text(&StoredQueue::default())?;
        tx.execute(sql, &[&form.id, &form.workspace, &data, &new]).await?;
    }
    if !removed.is_empty() {
        let sql = "UPDATE queues SET removed_at = $3 WHERE form = $1 AND integration = ANY($2::BYTEA[])";
        tx.execute(sql, &[&form.id, &removed, &form.updated_at]).await?;
    }
    Ok(())
}

/// Ends a pause of an integration by the server. Returns whether deliveries are to be [revived](PostgresStore::continue_revival).
pub(super) async fn resume(tx: &Tx, queue: QueueId, now: Timestamp) -> Result<bool> {
    let resumed = lock(tx, queue).await?.resumed(now);
    put(tx, queue, &resumed).await?;
    Ok(resumed.revival.is_some())
}

pub(super) async fn read(tx: &Tx, queue: QueueId) -> Result<StoredQueue> {
    let sql = "SELECT data FROM queues WHERE form = $1 AND integration = $2";
    Ok(tx.find_json(STATE, sql, &[&queue.form, &queue.integration]).await?.unwrap_or_default())
}

/// Locks a queue, after the deliveries that are locked with it.
pub(super) async fn lock(tx: &Tx, queue: QueueId) -> Result<StoredQueue> {
    let sql = "SELECT data FROM queues WHERE form = $1 AND integration = $2 FOR UPDATE";
    Ok(tx.find_json(STATE, sql, &[&queue.form, &queue.integration]).await?.unwrap_or_default())
}

/// Writes a locked queue.
pub(super) async fn put(tx: &Tx, queue: QueueId, state: &StoredQueue) -> Result<()> {
    let sql = "UPDATE queues SET data = $3 WHERE form = $1 AND integration = $2";
    tx.execute(sql, &[&queue.form, &queue.integration, &to_text(state)?]).await.map(drop)
}

pub(super) fn decode(row: &Row, column: usize) -> Result<StoredQueue> {
    json(STATE, row, column)
}

/// Reads the id of a queue from the columns `workspace`, `form` and `integration`, which come first.
pub(super) fn id(row: &Row) -> QueueId {
    QueueId { workspace: row.get(0), form: row.get(1), integration: row.get(2) }
}

impl PostgresStore {
    /// Goes on, in the background, with what another server, or an earlier process, has not finished. To be called when the
    /// store is opened and once an hour.
    pub(super) fn resume_queues(&self) {
        let store = self.clone();
        self.context.tasks.spawn(async move {
            let sql = "SELECT workspace, form, integration, data, removed_at IS NOT NULL FROM queues";
            for row in store.scan(|tx| async move { tx.query(sql, &[]).await }).await? {
                if row.get(4) {
                    store.drop_queue(id(&row));
                } else if decode(&row, 3)?.revival.is_some() {
                    store.continue_revival(id(&row));
                }
            }
            Ok(())
        });
    }

    /// Cancels what waits in the queue of a removed integration, in the background.
    pub(super) fn drop_queue(&self, queue: QueueId) {
        let store = self.clone();
        self.context.tasks.spawn(async move {
            while store.write(|tx| async move { cancel_batch(&tx, queue).await }).await? {}
            Ok(())
        });
    }

    /// Revives deliveries in the background. Has no effect once that is done.
    pub(super) fn continue_revival(&self, queue: QueueId) {
        let store = self.clone();
        self.context.tasks.spawn(async move {
            while store.write(|tx| async move { revive_batch(&tx, queue).await }).await? {
                store.context.due.wake();
            }
            Ok(())
        });
    }
}

/// Cancels some of the deliveries that wait in a queue whose integration was removed. Returns whether there were any.
async fn cancel_batch(tx: &Tx, queue: QueueId) -> Result<bool> {
    let sql = "SELECT removed_at FROM queues WHERE form = $1 AND integration = $2 AND removed_at IS NOT NULL";
    let Some(removed) = tx.query_opt(sql, &[&queue.form, &queue.integration]).await? else {
        return Ok(false);
    };
    let at: Timestamp = removed.get(0);
    let rest = "deliveries WHERE form = $1 AND integration = $2 AND class < 3
                ORDER BY event, target LIMIT $3 FOR UPDATE";
    let waiting = delivery_rows::query(tx, rest, &[&queue.form, &queue.integration, &BATCH]).await?;
    let cancel = |delivery: &Delivery| delivery.ended(DeliveryStatus::Canceled, at);
    delivery_rows::change(tx, queue.workspace, &waiting, cancel).await?;
    Ok(!waiting.is_empty())
}

/// Makes some of the dead deliveries pending that are being revived. Returns whether there were any.
async fn revive_batch(tx: &Tx, queue: QueueId) -> Result<bool> {
    let QueueId { workspace, form, integration } = queue;
    let Some(Revival { since, until }) = read(tx, queue).await?.revival else { return Ok(false) };
    let rest = "deliveries WHERE form = $1 AND integration = $2 AND class = $3 AND at >= $4 AND at <= $5
                ORDER BY at, event, target LIMIT $6 FOR UPDATE";
    let class = number(QueueClass::Dead);
    let params: Params<'_> = &[&form, &integration, &class, &since, &until, &BATCH];
    let dead = delivery_rows::query(tx, rest, params).await?;
    delivery_rows::change(tx, workspace, &dead, |delivery| delivery.restarted(until, 0)).await?;
    if dead.is_empty() {
        let state = lock(tx, queue).await?;
        let is_done = |revival: &Revival| (revival.since, revival.until) == (since, until);
        let revival = state.revival.filter(|revival| !is_done(revival));
        put(tx, queue, &StoredQueue { revival, ..state }).await?;
    }
    Ok(!dead.is_empty())
}

/// Erases some of the deliveries of a queue that have a class and ended by `ended`. Returns whether there were any.
pub(super) async fn prune_batch(tx: &Tx, queue: QueueId, class: i16, ended: Timestamp) -> Result<bool> {
    let QueueId { workspace, form, integration } = queue;
    let sql = "DELETE FROM deliveries WHERE workspace = $1 AND class = $4 AND at <= $5 AND (event, target) IN (
                   SELECT event, target FROM deliveries WHERE form = $2 AND integration = $3 AND class = $4 AND at <= $5
                   ORDER BY at, event, target LIMIT $6)
               RETURNING event, target";
    let rows = tx.query(sql, &[&workspace, &form, &integration, &class, &ended, &BATCH]).await?;
    let events: Vec<EventId> = rows.iter().map(|row| row.get(0)).collect();
    let targets: Vec<DeliveryTarget> = rows.iter().map(|row| row.get(1)).collect();
    let sql = "DELETE FROM attempts WHERE form = $1
               AND (event, target) IN (SELECT unnest($2::BYTEA[]), unnest($3::BYTEA[]))";
    tx.execute(sql, &[&form, &events, &targets]).await?;
    let sql = "DELETE FROM events WHERE form = $1 AND id = ANY($2::BYTEA[]) AND NOT EXISTS (
                   SELECT 1 FROM deliveries WHERE workspace = $3 AND deliveries.event = events.id)";
    tx.execute(sql, &[&form, &events, &workspace]).await?;
    Ok(!rows.is_empty())
}

/// Makes some of the deliveries of a queue due that wait longer than their schedule says. Returns whether there were any.
pub(super) async fn bring_batch(tx: &Tx, queue: QueueId, now: Timestamp) -> Result<bool> {
    let rest = format!(
        "deliveries WHERE form = $1 AND integration = $2 AND class < 2 AND due > $3 AND due - $3 > wait_ms
         AND NOT {IS_CLAIMED} ORDER BY event, target LIMIT $4 FOR UPDATE"
    );
    let late = delivery_rows::query(tx, &rest, &[&queue.form, &queue.integration, &now, &BATCH]).await?;
    delivery_rows::change(tx, queue.workspace, &late, |delivery| delivery.clone().pending(now, 0)).await?;
    Ok(!late.is_empty())
}
