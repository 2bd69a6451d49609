//! Maintenance of deliveries: those that ended long ago, and those that a clock set back delays.

use super::delivery_rows::{self, IS_CLAIMED};
use super::queues::BATCH;
use super::transaction::Tx;
use crate::clock::Timestamp;
use crate::id::{DeliveryTarget, EventId};
use crate::store::{QueueId, Result};

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
