//! How often confirmations go to respondents, whose addresses anybody may have typed: so that nobody can flood a mailbox with
//! the help of a form.

use std::ops::Bound;

use super::delivery_layout as keys;
use super::engine::job::Progress;
use super::engine::tx::Tx;
use super::layout::{self, undecodable};
use super::row_source::{self, RowSource};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, FormId};
use crate::store::{ConfirmationPermit, Result, StoreError};

/// Confirmations of a form within an hour that a mail server accepts.
const MAX_PER_HOUR: u64 = 500;

const HOUR_MILLIS: i64 = 3_600_000;

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
        if is_other && is_within(layout::decode_time(sent_at)?, now, DAY_MILLIS) {
            return Ok(ConfirmationPermit::AlreadySent);
        }
    }
    let (since, count) = hour(tx, form, now)?;
    if count >= MAX_PER_HOUR {
        let wait_ms = HOUR_MILLIS - (now.millis() - since.millis());
        return Ok(ConfirmationPermit::Wait { wait_ms });
    }
    let body = [layout::encode_time(now), delivery.to_bytes().to_vec()].concat();
    tx.put(keys::confirmation(form, day_of(now), mailbox), body);
    put_hour(tx, form, since, count + 1);
    Ok(ConfirmationPermit::Granted)
}

fn put_hour(tx: &mut Tx<'_>, form: FormId, since: Timestamp, count: u64) {
    let body = [layout::encode_time(since), count.to_be_bytes().to_vec()].concat();
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
        let (since, count) = hour(tx, form, now)?;
        put_hour(tx, form, since, count.saturating_sub(1));
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

/// Returns when the hour of a form began, and the confirmations permitted since.
fn hour(rows: &impl RowSource, form: FormId, now: Timestamp) -> Result<(Timestamp, u64)> {
    let Some(body) = rows.get(&keys::confirmations(form))? else { return Ok((now, 0)) };
    let (since, count) = body.split_first_chunk::<8>().ok_or_else(unknown)?;
    let (since, count) = (layout::decode_time(since)?, count.try_into().map_err(|_length| unknown())?);
    Ok(if is_within(since, now, HOUR_MILLIS) { (since, u64::from_be_bytes(count)) } else { (now, 0) })
}

fn unknown() -> StoreError {
    undecodable("a confirmation")
}

/// The number of the day since 1970.
fn day_of(time: Timestamp) -> u32 {
    u32::try_from(time.millis() / DAY_MILLIS).unwrap_or(0).max(1)
}

/// Whether `time` is at most `millis` before `now`. A time in the future is of a clock that was set back.
fn is_within(time: Timestamp, now: Timestamp, millis: i64) -> bool {
    (0..millis).contains(&(now.millis() - time.millis()))
}
