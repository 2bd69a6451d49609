//! Deliveries: one event owed to one integration, its attempts, and what follows from each.

pub mod attempt;
pub mod classify;
pub mod confirmation;
pub mod error_code;
pub mod health;
pub mod lifecycle;
pub mod selection;

use serde::{Deserialize, Serialize};

use self::error_code::ErrorCode;
use crate::clock::Timestamp;
use crate::domain::integration::event::EventType;
use crate::domain::open_enum::{OpenEnum, named_enum};
use crate::id::{DeliveryId, DeliveryTarget, EventId, FormId, SubmissionId};

named_enum! {
    #[derive(Default)]
    DeliveryStatus {
        #[default]
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

/// One event owed to one address of an integration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    #[serde(skip)]
    pub event: EventId,
    #[serde(skip)]
    pub target: DeliveryTarget,
    #[serde(default, skip_serializing_if = "is_default")]
    pub event_type: EventType,
    /// Number of the event in its form.
    #[serde(default)]
    pub sequence: u64,
    pub form: FormId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<SubmissionId>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub status: DeliveryStatus,
    /// Attempts so far, those included that do not count towards the schedule.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts: u32,
    /// How many of them do not count towards the schedule, because the receiver asked to repeat them later.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncounted: u32,
    /// Number of attempts before the last manual redelivery.
    #[serde(default, skip_serializing_if = "is_default")]
    pub earlier_attempts: u32,
    /// Whether the next attempt is a manual redelivery.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_manual: bool,
    /// Whether it is attempted only after the earlier ones of its queue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_order: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Milliseconds from the decision about the next attempt to `next_attempt_at`. If that is further in the future, the clock
    /// was set back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wait_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<DeliveryError>,
    /// The address of the last attempt, if the integration has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Whether it may have been sent before: an earlier claim of it ended without an outcome.
    #[serde(skip)]
    pub may_be_sent: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Delivery {
    pub fn id(&self) -> DeliveryId {
        DeliveryId::of(self.event, self.target)
    }

    /// When the event happened.
    pub fn created_at(&self) -> Timestamp {
        Timestamp::from_millis(self.event.millis())
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
