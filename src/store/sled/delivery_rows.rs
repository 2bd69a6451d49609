//! The rows of one delivery: itself, its entries in the list and in the index of its queue, its body and its attempts.

use serde::{Deserialize, Serialize};

use super::delivery_layout::{self as keys, QueueClass};
use super::engine::tx::{Direction, Tx};
use super::layout;
use super::row_source::RowSource;
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, WorkspaceId};
use crate::store::Result;

/// A stored delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeliveryRow {
    pub(super) delivery: Delivery,
    /// Number of the event in its form.
    pub(super) sequence: u64,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun_at: Option<Timestamp>,
}

impl DeliveryRow {
    pub(super) fn new(delivery: Delivery, sequence: u64) -> Self {
        Self { delivery, sequence, begun_at: None }
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self> {
        layout::from_json("a delivery", body)
    }

    pub(super) fn read(
        rows: &impl RowSource,
        form: FormId,
        event: EventId,
        integration: IntegrationId,
    ) -> Result<Option<Self>> {
        rows.get(&keys::delivery(form, event, integration))?.map(|body| Self::decode(&body)).transpose()
    }

    /// Returns the row with another state of its delivery.
    pub(super) fn with(&self, delivery: Delivery) -> Self {
        Self { delivery, ..self.clone() }
    }

    /// Writes a new row, with its entries in the list and the index.
    pub(super) fn insert(&self, tx: &mut Tx<'_>, workspace: WorkspaceId) -> Result<()> {
        let Delivery { form, event, integration, .. } = self.delivery;
        // All its rows are written, and deleted, together with that of the delivery, which does not exist.
        tx.put_new(keys::list_entry(workspace, event, integration), form.to_bytes().to_vec());
        tx.put_new(index_entry(&self.delivery), IndexValue::of(&self.delivery).encode());
        tx.put_new(keys::delivery(form, event, integration), layout::to_json(self)?);
        Ok(())
    }

    /// Writes the row in place of `old`, another state of it.
    pub(super) fn replace(&self, tx: &mut Tx<'_>, old: &Self) -> Result<()> {
        let Delivery { form, event, integration, .. } = self.delivery;
        let (replaced, entry) = (index_entry(&old.delivery), index_entry(&self.delivery));
        if replaced != entry {
            tx.delete(replaced);
        }
        tx.put(entry, IndexValue::of(&self.delivery).encode());
        tx.put(keys::delivery(form, event, integration), layout::to_json(self)?);
        Ok(())
    }

    /// Deletes the row and all that belongs to it, except its attempts.
    pub(super) fn delete(&self, tx: &mut Tx<'_>, workspace: WorkspaceId) {
        let delivery = &self.delivery;
        let (form, event, integration) = (delivery.form, delivery.event, delivery.integration);
        tx.delete(keys::list_entry(workspace, event, integration));
        tx.delete(index_entry(delivery));
        tx.delete(keys::body(form, event, integration));
        tx.delete(keys::delivery(form, event, integration));
    }

    pub(super) fn body_key(&self) -> Vec<u8> {
        keys::body(self.delivery.form, self.delivery.event, self.delivery.integration)
    }
}

/// Finds the row of a delivery of `workspace` by the list.
pub(super) fn find(
    rows: &impl RowSource,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<Option<DeliveryRow>> {
    for (entry, form) in rows.scan(keys::list_of(workspace, id), Direction::Ascending, usize::MAX)? {
        let (event, integration) = keys::listed_delivery(&entry)?;
        if DeliveryId::of(event, integration) == id {
            return DeliveryRow::read(rows, layout::listed_form(&form)?, event, integration);
        }
    }
    Ok(None)
}

/// Logs an attempt of a delivery.
pub(super) fn put_attempt(tx: &mut Tx<'_>, delivery: &Delivery, attempt: &Attempt) -> Result<()> {
    let key = keys::attempt(delivery.form, delivery.event, delivery.integration, attempt.number);
    tx.put(key, layout::to_json(attempt)?);
    Ok(())
}

fn class(delivery: &Delivery) -> QueueClass {
    match delivery.status {
        DeliveryStatus::Pending | DeliveryStatus::InFlight if delivery.event_type.is_deletion() => {
            QueueClass::Deletion
        }
        DeliveryStatus::Pending | DeliveryStatus::InFlight => QueueClass::Due,
        DeliveryStatus::Dead => QueueClass::Dead,
        DeliveryStatus::Delivered | DeliveryStatus::Canceled | DeliveryStatus::Skipped => QueueClass::Ended,
        DeliveryStatus::Paused => QueueClass::Paused,
    }
}

/// Key of the delivery's entry in the index of its queue. Every delivery has exactly one.
fn index_entry(delivery: &Delivery) -> Vec<u8> {
    let class = class(delivery);
    let at = match class {
        QueueClass::Deletion | QueueClass::Due => delivery.next_attempt_at,
        QueueClass::Dead | QueueClass::Ended => delivery.finished_at,
        QueueClass::Paused => None,
    };
    let at = at.unwrap_or(delivery.created_at);
    keys::index_entry((delivery.form, delivery.integration), class, at, delivery.event)
}

/// Value of an index entry: the state of a delivery beyond its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexValue {
    InFlight,
    /// How long its last attempt took, in milliseconds.
    Delivered(u64),
    Other,
}

impl IndexValue {
    fn of(delivery: &Delivery) -> Self {
        match delivery.status {
            DeliveryStatus::InFlight => Self::InFlight,
            DeliveryStatus::Delivered => Self::Delivered(delivery.duration_ms.unwrap_or(0)),
            DeliveryStatus::Pending
            | DeliveryStatus::Dead
            | DeliveryStatus::Paused
            | DeliveryStatus::Canceled
            | DeliveryStatus::Skipped => Self::Other,
        }
    }

    fn encode(self) -> Vec<u8> {
        match self {
            Self::InFlight => vec![1],
            Self::Delivered(millis) => millis.to_be_bytes().to_vec(),
            Self::Other => Vec::new(),
        }
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self> {
        match body {
            [] => Ok(Self::Other),
            [1] => Ok(Self::InFlight),
            millis => match millis.try_into() {
                Ok(millis) => Ok(Self::Delivered(u64::from_be_bytes(millis))),
                Err(_length) => Err(layout::undecodable("a queue entry")),
            },
        }
    }
}
