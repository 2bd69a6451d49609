//! Upgrade of a store in which deliveries of submissions were entries of a packed outbox until their first attempt, and had
//! their rows elsewhere afterwards.
//!
//! ```text
//! z form(8) sequence(8)    1, count(1), and for each: integration(8); then for each event: submission(16)
//! d form(8) event(16) integration(8) a delivery, JSON
//! v workspace(8) event(16) integration(8) its list entry: the form(8)
//! J also had the last event that the queue had taken from the outbox
//! ```
//! Each row of either kind is converted in one step and deleted, so that an interrupted upgrade goes on where it was.

use serde::Deserialize;

use super::delivery_layout as keys;
use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::layout::{self, undecodable};
use super::row_source::RowSource;
use super::{SledStore, delivery_rows, delivery_upkeep, events};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::id::{DeliveryTarget, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::{Result, StoreError};

const OUTBOX: u8 = b'z';
const DELIVERIES: u8 = b'd';

/// Deliveries converted per transaction.
const BATCH: usize = 25;

/// A delivery as it was stored.
#[derive(Deserialize)]
struct OldRow {
    delivery: OldDelivery,
    sequence: u64,
}

#[derive(Deserialize)]
struct OldDelivery {
    event: EventId,
    integration: IntegrationId,
    /// Now [`Delivery::uncounted`].
    paced: u32,
    /// The recipients of a mail that need no other attempt, a bit each.
    #[serde(default)]
    settled: u16,
    /// The members that have not changed.
    #[serde(flatten)]
    same: Delivery,
}

/// The part of a queue's state that is not stored any more.
#[derive(Deserialize)]
struct OldQueue {
    #[serde(default)]
    position: u64,
}

impl SledStore {
    /// Converts the deliveries of an earlier version. Blocks until that is done.
    pub(super) fn upgrade_deliveries(&self) -> Result<()> {
        if self.reader.get(layout::DELIVERY_ROWS)?.is_some() {
            return Ok(());
        }
        loop {
            match self.engine.write_blocking(upgrade_some) {
                Ok(Progress::Done) => return Ok(()),
                // A damaged index is rebuilt.
                Ok(Progress::More) | Err(StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn upgrade_some(tx: &mut Tx<'_>) -> Result<Progress> {
    let old = tx.scan(layout::all(DELIVERIES), Direction::Ascending, BATCH)?;
    for (key, body) in &old {
        upgrade_row(tx, key.clone(), layout::from_json("a delivery", body)?)?;
    }
    if !old.is_empty() {
        return Ok(Progress::More);
    }
    if let Some((key, body)) = tx.scan(layout::all(OUTBOX), Direction::Ascending, 1)?.pop() {
        upgrade_outbox(tx, &key, &body)?;
        tx.delete(key);
        return Ok(Progress::More);
    }
    for (key, _) in tx.scan_all(layout::all(keys::QUEUES))? {
        delivery_upkeep::recount(tx, keys::indexed_queue(&key)?)?;
    }
    tx.put(layout::DELIVERY_ROWS.to_vec(), Vec::new());
    Ok(Progress::Done)
}

/// Finds the form of a queue; `None` if it is being purged.
fn form_of(tx: &Tx<'_>, form: FormId) -> Result<Option<(WorkspaceId, Form)>> {
    let Some(workspace) = super::forms::workspace_of(tx, form)? else { return Ok(None) };
    Ok(super::forms::find(tx, workspace.form(form))?.map(|form| (workspace, form)))
}

fn upgrade_row(tx: &mut Tx<'_>, key: Vec<u8>, OldRow { delivery: old, sequence }: OldRow) -> Result<()> {
    tx.delete(key);
    let Some((workspace, form)) = form_of(tx, old.same.form)? else { return Ok(()) };
    let stored = Delivery {
        event: old.event,
        target: old.integration.into(),
        sequence,
        uncounted: old.paced,
        wait_ms: old.same.next_attempt_at.map_or(0, |at| (at.millis() - old.event.millis()).max(0)),
        ..old.same
    };
    // An attempt in flight ended with the process: it is given back.
    let first = match stored.status {
        DeliveryStatus::InFlight => {
            let attempts = stored.attempts.saturating_sub(1);
            Delivery { attempts, ..stored.clone() }.pending(stored.created_at(), 0)
        }
        _ => stored.clone(),
    };
    let in_order = form.integration(old.integration).is_some_and(Integration::is_in_order);
    let first = Delivery { in_order, ..first };
    // A mail to several addresses becomes a delivery for each that is not settled.
    let is_settled = |recipient: u8| first.is_waiting() && old.settled & 1 << recipient != 0;
    let at = first.next_attempt_at.unwrap_or(first.created_at());
    let own = if is_settled(0) { first.ended(DeliveryStatus::Delivered, at) } else { first.clone() };
    delivery_rows::replace(tx, workspace, &stored, &own)?;
    let recipients = form.integration(old.integration).map(Integration::recipients).unwrap_or_default();
    for recipient in recipients.into_iter().skip(1) {
        if first.is_waiting() && !is_settled(recipient) {
            let target = DeliveryTarget { integration: old.integration, recipient };
            delivery_rows::insert(tx, workspace, &Delivery { target, ..first.clone() })?;
        }
    }
    Ok(())
}

/// Writes the deliveries of the entries of an outbox row that their queues had not taken yet.
fn upgrade_outbox(tx: &mut Tx<'_>, key: &[u8], body: &[u8]) -> Result<()> {
    let unknown = || undecodable("an outbox row");
    let (form, first) = key.get(1..).and_then(<[u8]>::split_first_chunk).ok_or_else(unknown)?;
    let first = u64::from_be_bytes(first.try_into().map_err(|_length| unknown())?);
    let Some((workspace, form)) = form_of(tx, FormId::from_bytes(*form))? else { return Ok(()) };
    let Some((&[1, count], rest)) = body.split_first_chunk() else { return Err(unknown()) };
    let (integrations, submissions) = rest.split_at_checked(8 * usize::from(count)).ok_or_else(unknown)?;
    for integration in integrations.as_chunks().0.iter().map(|id| IntegrationId::from_bytes(*id)) {
        let Some(integration) = form.integration(integration) else { continue };
        let queue = tx.get(&keys::queue(form.id, integration.id))?;
        let position = match queue {
            Some(body) => layout::from_json::<OldQueue>("the state of a queue", &body)?.position,
            None => 0,
        };
        for (submission, sequence) in submissions.as_chunks().0.iter().zip(first..) {
            let submission = SubmissionId::from_bytes(*submission);
            let delivery = Delivery::of_completed(form.id, submission, sequence);
            let known = delivery_rows::read(tx, workspace, delivery.event, integration.id.into())?;
            if sequence > position && known.is_none() {
                events::insert_deliveries(tx, &form, &delivery, &[integration])?;
            }
        }
    }
    Ok(())
}
