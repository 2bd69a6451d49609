//! Permits of confirmations to respondents.

use super::transaction::Tx;
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::confirmation::{ConfirmationHour, is_recent};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, FormId};
use crate::store::{ConfirmationPermit, Result};

/// Takes a permit to send a confirmation of `form` to `mailbox`.
pub(super) async fn permit(
    tx: &Tx,
    form: FormId,
    (mailbox, delivery): (u64, DeliveryId),
    now: Timestamp,
) -> Result<ConfirmationPermit> {
    let hour = lock_hour(tx, form, now).await?;
    let mailbox = mailbox.cast_signed();
    let sql = "SELECT at FROM confirmations WHERE form = $1 AND mailbox = $2 AND delivery <> $3";
    let other = tx.query_opt(sql, &[&form, &mailbox, &delivery]).await?;
    if other.is_some_and(|row| is_recent(row.get(0), now)) {
        return Ok(ConfirmationPermit::AlreadySent);
    }
    let hour = match hour.permit(now) {
        Ok(hour) => hour,
        Err(wait_ms) => return Ok(ConfirmationPermit::Wait { wait_ms }),
    };
    let sql = "INSERT INTO confirmations (form, mailbox, at, delivery) VALUES ($1, $2, $3, $4)
               ON CONFLICT (form, mailbox) DO UPDATE SET at = excluded.at, delivery = excluded.delivery";
    tx.execute(sql, &[&form, &mailbox, &now, &delivery]).await?;
    put_hour(tx, form, hour).await?;
    Ok(ConfirmationPermit::Granted)
}

/// Records how an attempt with a permit changed its delivery: one that was not accepted does not count, and one that is dead
/// does not keep the respondent from another.
pub(super) async fn record_attempt(tx: &Tx, delivery: &Delivery, mailbox: u64, now: Timestamp) -> Result<()> {
    if delivery.status != DeliveryStatus::Delivered {
        let hour = lock_hour(tx, delivery.form, now).await?;
        put_hour(tx, delivery.form, hour.without_one()).await?;
    }
    if delivery.status == DeliveryStatus::Dead {
        let sql = "DELETE FROM confirmations WHERE form = $1 AND mailbox = $2 AND delivery = $3";
        tx.execute(sql, &[&delivery.form, &mailbox.cast_signed(), &delivery.id()]).await?;
    }
    Ok(())
}

/// Erases the permits that are older than a day.
pub(super) async fn erase_expired(tx: &Tx, now: Timestamp) -> Result<()> {
    let expired = now.millis() - DAY_MILLIS;
    tx.execute("DELETE FROM confirmations WHERE at <= $1", &[&expired]).await.map(drop)
}

/// Locks the confirmations of a form, and returns those of its hour.
async fn lock_hour(tx: &Tx, form: FormId, now: Timestamp) -> Result<ConfirmationHour> {
    let sql = "INSERT INTO confirmation_hours (form, since, permitted) VALUES ($1, $2, 0) ON CONFLICT (form) DO NOTHING";
    tx.execute(sql, &[&form, &now]).await?;
    let sql = "SELECT since, permitted FROM confirmation_hours WHERE form = $1 FOR UPDATE";
    let row = tx.query_opt(sql, &[&form]).await?;
    let hour = |row: tokio_postgres::Row| ConfirmationHour {
        since: row.get(0),
        permitted: row.get::<_, i64>(1).cast_unsigned(),
    };
    Ok(ConfirmationHour::at(row.map(hour), now))
}

async fn put_hour(
    tx: &Tx,
    form: FormId,
    ConfirmationHour { since, permitted }: ConfirmationHour,
) -> Result<()> {
    let sql = "UPDATE confirmation_hours SET since = $2, permitted = $3 WHERE form = $1";
    tx.execute(sql, &[&form, &since, &permitted.cast_signed()]).await.map(drop)
}
