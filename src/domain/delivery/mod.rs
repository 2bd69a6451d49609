//! Deliveries: one event owed to one integration, its attempts, and what follows from each.

pub mod attempt;
pub mod classify;
pub mod error_code;
pub mod health;
pub mod lifecycle;
pub mod selection;

use serde::{Deserialize, Serialize};

use self::error_code::ErrorCode;
use crate::clock::Timestamp;
use crate::domain::integration::event::EventType;
use crate::domain::open_enum::{OpenEnum, named_enum};
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, SubmissionId};

named_enum! {
    DeliveryStatus {
        Pending = "pending",
        InFlight = "in_flight",
        Delivered = "delivered",
        /// All attempts failed, or one for good. Can be redelivered.
        Dead = "dead",
        /// Waits for its integration to be enabled, or its form or submission to be restored.
        Paused = "paused",
        Canceled = "canceled",
        /// Nothing to send: the integration's condition does not hold, or a confirmation has no address, or would be its second
        /// within a day.
        Skipped = "skipped",
    }
}

impl DeliveryStatus {
    /// Whether no attempt follows, unless it is redelivered.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Dead | Self::Canceled | Self::Skipped)
    }
}

/// One event owed to one integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub event: EventId,
    pub event_type: EventType,
    pub form: FormId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<SubmissionId>,
    pub integration: IntegrationId,
    pub status: DeliveryStatus,
    /// Attempts so far, those included that the receiver asked to repeat later.
    pub attempts: u32,
    /// How many of them do not count towards the schedule: the receiver asked to repeat them later, or the server stopped.
    pub paced: u32,
    /// Number of attempts before the last manual redelivery.
    pub earlier_attempts: u32,
    /// Whether the next attempt is a manual redelivery.
    pub is_manual: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<DeliveryError>,
    /// How long the last attempt took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

impl Delivery {
    pub fn id(&self) -> DeliveryId {
        DeliveryId::of(self.event, self.integration)
    }
}

/// Why the last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryError {
    /// Unknown if a newer server stored it.
    pub code: OpenEnum<ErrorCode>,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}
