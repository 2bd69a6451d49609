//! State of a queue, beyond its deliveries. It exists from the creation of the integration until the queue is dropped.

use serde::{Deserialize, Serialize};

use super::delivery_layout as keys;
use super::engine::tx::Tx;
use super::layout;
use super::row_source::RowSource;
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::integration::csv_file::CsvPosition;
use crate::id::{FormId, IntegrationId};
use crate::store::{QueueState, Result};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredQueue {
    /// Every event of the outbox up to this number that is owed to the integration has a row of its own.
    pub(super) position: u64,
    /// How many events after the position have one, too: those that were canceled or redelivered by hand.
    #[serde(default)]
    pub(super) ahead: u64,
    #[serde(default)]
    pub(super) health: Health,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) paced_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<CsvPosition>,
    /// Deliveries that are being made pending again, in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revival: Option<Revival>,
}

/// Revival of the deliveries that died in a time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Revival {
    pub(super) since: Timestamp,
    /// When the integration was resumed: a delivery that dies later has been tried again.
    pub(super) until: Timestamp,
}

impl StoredQueue {
    pub(super) fn read(rows: &impl RowSource, form: FormId, integration: IntegrationId) -> Result<Self> {
        let body = rows.get(&keys::queue(form, integration))?;
        body.map_or_else(|| Ok(Self::default()), |body| Self::decode(&body))
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self> {
        layout::from_json("the state of a queue", body)
    }

    /// Writes the state so that it becomes visible after the deliveries that it accounts for.
    pub(super) fn put(&self, tx: &mut Tx<'_>, form: FormId, integration: IntegrationId) -> Result<()> {
        tx.put_last(keys::queue(form, integration), layout::to_json(self)?);
        Ok(())
    }

    pub(super) fn into_state(self) -> QueueState {
        QueueState { health: self.health, paced_until: self.paced_until, file: self.file }
    }
}
