//! Changes of deliveries by hand.

use super::delivery_rows;
use super::engine::tx::Tx;
use super::forms::find_cached;
use super::queue::StoredQueue;
use super::{Context, Step, Stop};
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::admission::Refusal;
use crate::id::WorkspaceId;
use crate::store::{ManualChange, QueueId};

/// Changes a delivery that was found.
pub(super) fn apply(
    tx: &mut Tx<'_>,
    context: &Context,
    workspace: WorkspaceId,
    found: &Delivery,
    change: ManualChange,
    now: Timestamp,
) -> Step<Delivery> {
    let form = find_cached(tx, context, workspace, found.form)?.ok_or(Stop::Missing)?;
    let delivery = delivery_rows::read(tx, workspace, found.event, found.target)?.ok_or(Stop::Missing)?;
    let id = found.target.integration;
    let is_claimed =
        context.claims.is_claimed(QueueId { workspace, form: form.id, integration: id }, &delivery);
    let in_flight = Delivery { status: DeliveryStatus::InFlight, ..delivery.clone() };
    let is_waiting = delivery.is_waiting() && !is_claimed;
    let changed = match change {
        ManualChange::Cancel if !is_waiting => return Err(Refusal::NotPending.into()),
        ManualChange::Cancel => delivery.ended(DeliveryStatus::Canceled, now),
        ManualChange::Redeliver { wait_ms } => {
            let deleted = Refusal::NotRepeatable("the integration of the delivery was deleted");
            let integration = form.integration(id).ok_or(deleted)?;
            if !integration.can_repeat(&delivery) {
                return Err(Refusal::NotRepeatable("the row of the submission is in the file already").into());
            }
            if found.target.recipient >= integration.recipients() {
                let why = "the integration no longer has the address of the delivery";
                return Err(Refusal::NotRepeatable(why).into());
            }
            match is_waiting {
                _ if is_claimed => return Ok(in_flight),
                true => delivery.clone().pending(now, wait_ms),
                false => delivery.restarted(now, wait_ms),
            }
        }
    };
    let is_manual = matches!(change, ManualChange::Redeliver { .. });
    let changed = Delivery { is_manual, ..changed };
    delivery_rows::replace(tx, workspace, &delivery, &changed)?;
    let health = StoredQueue::read(tx, delivery_rows::queue_of(&changed))?.health;
    Ok(changed.shown(&form, &health))
}
