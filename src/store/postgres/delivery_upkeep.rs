//! Maintenance of deliveries: those that ended long ago, and those that a clock set back delays.

use super::delivery_rows::{self, IS_CLAIMED, last_number, number, select};
use super::queues::BATCH;
use super::transaction::Tx;
use super::{PostgresStore, confirmations, queues};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::id::{DeliveryTarget, EventId};
use crate::store::queue::KEPT_DAYS;
use crate::store::{QueueId, Result};

impl PostgresStore {
    /// See [`prune_deliveries`](crate::store::Deliveries::prune_deliveries).
    pub(super) async fn prune(&self, now: Timestamp) -> Result<()> {
        for (class, days) in KEPT_DAYS {
            let ended = Timestamp::from_millis(now.millis() - days * DAY_MILLIS);
            for class in number(class)..=last_number(class) {
                let sql = "SELECT workspace, form, integration FROM queues
                           WHERE EXISTS (SELECT 1 FROM deliveries WHERE deliveries.form = queues.form
                               AND deliveries.integration = queues.integration AND class = $1 AND at <= $2)";
                let rows = self.scan(|tx| async move { tx.query(sql, &[&class, &ended]).await }).await?;
                for queue in rows.iter().map(queues::id) {
                    while self.write(|tx| async move { prune_batch(&tx, queue, class, ended).await }).await? {
                    }
                }
            }
        }
        let sql = "DELETE FROM queues WHERE removed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM deliveries
                   WHERE deliveries.form = queues.form AND deliveries.integration = queues.integration)";
        self.write(|tx| async move {
            tx.execute(sql, &[]).await?;
            confirmations::erase_expired(&tx, now).await
        })
        .await
    }

    /// See [`bring_forward`](crate::store::Deliveries::bring_forward).
    pub(super) async fn bring_all_forward(&self, now: Timestamp) -> Result<()> {
        self.resume_queues();
        // In order, only the first ones have had an attempt, and may wait for another.
        let sql = "SELECT workspace, form, integration FROM queues WHERE removed_at IS NULL AND (
                EXISTS (SELECT 1 FROM deliveries WHERE deliveries.form = queues.form
                    AND deliveries.integration = queues.integration AND class = 0 AND at > $1)
                OR EXISTS (SELECT 1 FROM deliveries WHERE deliveries.form = queues.form
                    AND deliveries.integration = queues.integration AND class = 1 AND at > $1)
                OR EXISTS (SELECT 1 FROM (SELECT due FROM deliveries WHERE deliveries.form = queues.form
                    AND deliveries.integration = queues.integration AND class = 1
                    ORDER BY at, event, target LIMIT $2) first WHERE due > $1))";
        let rows = self.scan(|tx| async move { tx.query(sql, &[&now, &BATCH]).await }).await?;
        for queue in rows.iter().map(queues::id) {
            while self.write(|tx| async move { bring_batch(&tx, queue, now).await }).await? {}
        }
        self.context.wake();
        Ok(())
    }
}

/// Erases some of the deliveries of a queue that have a class and ended by `ended`. Returns whether there were any.
async fn prune_batch(tx: &Tx, queue: QueueId, class: i16, ended: Timestamp) -> Result<bool> {
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
async fn bring_batch(tx: &Tx, queue: QueueId, now: Timestamp) -> Result<bool> {
    let sql = select(&format!(
        "deliveries WHERE form = $1 AND integration = $2 AND class < 2 AND due > $3 AND due - $3 > wait_ms
         AND NOT {IS_CLAIMED} ORDER BY event, target LIMIT $4 FOR UPDATE"
    ));
    let rows = tx.query(&sql, &[&queue.form, &queue.integration, &now, &BATCH]).await?;
    let late = rows.iter().map(delivery_rows::decode).collect::<Result<Vec<_>>>()?;
    delivery_rows::change(tx, queue.workspace, &late, |delivery| delivery.clone().pending(now, 0)).await?;
    Ok(!late.is_empty())
}
