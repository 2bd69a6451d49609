//! Permits of confirmations to respondents, by day and by hour.

use std::ops::Bound;

use super::delivery_layout as keys;
use super::engine::job::Progress;
use super::engine::tx::Tx;
use super::layout::{self, undecodable};
use super::row_source::{self, RowSource};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::confirmation::{ConfirmationHour, is_recent};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, FormId};
use crate::store::{ConfirmationPermit, Result, StoreError};

/// Takes a permit to send a confirmation of `form` to `mailbox`.
pub(super) fn permit(
    tx: &mut Tx<'_>,
    form: FormId,
    (mailbox, delivery): (u64, DeliveryId),
    now: Timestamp,
) -> Result<ConfirmationPermit> {
    for day in [day_of(now) - 1, day_of(now)] {
        let Some(body) = tx.get(&keys::confirmation(form, day, mailbox))? else { continue };
        let (sent_at, earlier) = body.split_first_chunk::<8>().ok_or_else(unknown)?;
        let is_other = earlier != delivery.to_bytes();
        if is_other && is_recent(layout::decode_time(sent_at)?, now) {
            return Ok(ConfirmationPermit::AlreadySent);
        }
    }
    let hour = match hour(tx, form, now)?.permit(now) {
        Ok(hour) => hour,
        Err(wait_ms) => return Ok(ConfirmationPermit::Wait { wait_ms }),
    };
    let body = [layout::encode_time(now), delivery.to_bytes().to_vec()].concat();
    tx.put(keys::confirmation(form, day_of(now), mailbox), body);
    put_hour(tx, form, hour);
    Ok(ConfirmationPermit::Granted)
}

fn put_hour(tx: &mut Tx<'_>, form: FormId, ConfirmationHour { since, permitted }: ConfirmationHour) {
    let body = [layout::encode_time(since), permitted.to_be_bytes().to_vec()].concat();
    tx.put(keys::confirmations(form), body);
}

/// Records how an attempt with a permit changed its delivery: one that was not accepted does not count, and one that is dead
/// does not keep the respondent from another.
pub(super) fn record_attempt(
    tx: &mut Tx<'_>,
    delivery: &Delivery,
    mailbox: u64,
    now: Timestamp,
) -> Result<()> {
    let form = delivery.form;
    if delivery.status != DeliveryStatus::Delivered {
        let hour = hour(tx, form, now)?;
        put_hour(tx, form, hour.without_one());
    }
    if delivery.status == DeliveryStatus::Dead {
        for day in [day_of(now) - 1, day_of(now)] {
            tx.delete(keys::confirmation(form, day, mailbox));
        }
    }
    Ok(())
}

/// Erases a batch of the permits of a form that are older than a day.
pub(super) fn erase_expired(tx: &mut Tx<'_>, form: FormId, now: Timestamp) -> Result<Progress> {
    let start = Bound::Excluded(keys::confirmations(form));
    let end = Bound::Excluded(keys::confirmation(form, day_of(now) - 1, 0));
    row_source::erase(tx, (start, end))
}

fn hour(rows: &impl RowSource, form: FormId, now: Timestamp) -> Result<ConfirmationHour> {
    let decode = |body: &[u8]| {
        let (since, permitted) = body.split_first_chunk::<8>().ok_or_else(unknown)?;
        let permitted = permitted.try_into().map_err(|_length| unknown())?;
        Ok(ConfirmationHour { since: layout::decode_time(since)?, permitted: u64::from_be_bytes(permitted) })
    };
    let last = rows.read(&keys::confirmations(form), decode)?;
    Ok(ConfirmationHour::at(last, now))
}

fn unknown() -> StoreError {
    undecodable("a confirmation")
}

/// The number of the day since 1970.
fn day_of(time: Timestamp) -> u32 {
    u32::try_from(time.millis() / DAY_MILLIS).unwrap_or(0).max(1)
}
