//! Queues and deliveries as stores keep them, whatever the store.

use serde::{Deserialize, Serialize};

use super::json::{from_json, to_json};
use super::{AttemptEnd, FinishedAttempt, Result};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::integration::event::EventType;
use crate::id::{DeliveryTarget, EventId};

/// A queue, as far as its deliveries do not show it. It exists from the creation of the integration until the integration is
/// deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredQueue {
    #[serde(default)]
    pub(super) health: Health,
    /// Deliveries that are being made pending again, in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revival: Option<Revival>,
    /// The number of changes that the file shows, if the integration is one.
    #[serde(default)]
    pub(super) written: u64,
}

/// Revival of the deliveries that died in a time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Revival {
    pub(super) since: Timestamp,
    /// When the integration was resumed: a delivery that dies later has been tried again.
    pub(super) until: Timestamp,
}

impl StoredQueue {
    /// Returns it after the integration was enabled again: no longer paused, its dead deliveries to be revived.
    #[must_use]
    pub(super) fn resumed(self, now: Timestamp) -> Self {
        let since =
            self.health.failing_since.into_iter().chain(self.revival.map(|earlier| earlier.since)).min();
        let revival = since.map(|since| Revival { since, until: now });
        Self { health: self.health.resumed(), revival, ..self }
    }
}

/// State of a delivery as far as a queue needs it, with a time by which those of a queue are in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueClass {
    /// Waits for an attempt, by its time: deletions, which a form in the trash does not pause.
    Deletion = 0,
    /// Waits for an attempt, as above: all others.
    Due = 1,
    /// Dead, by the time of the last attempt.
    Dead = 2,
    /// Delivered, canceled or skipped, by that time.
    Ended = 3,
    /// Its submission is in the trash; by the time of the event.
    Paused = 4,
}

/// Classes of deliveries with an attempt to come.
pub(super) const DUE_CLASSES: [QueueClass; 2] = [QueueClass::Deletion, QueueClass::Due];

/// Classes of deliveries that have not ended.
pub(super) const WAITING_CLASSES: [QueueClass; 3] =
    [QueueClass::Deletion, QueueClass::Due, QueueClass::Paused];

/// Days after which a dead delivery is erased, and any other that has ended.
pub(super) const KEPT_DAYS: [(QueueClass, i64); 2] = [(QueueClass::Dead, 30), (QueueClass::Ended, 7)];

impl QueueClass {
    pub(super) fn of(delivery: &Delivery) -> Self {
        match delivery.status {
            DeliveryStatus::Pending | DeliveryStatus::InFlight if delivery.event_type.is_deletion() => {
                Self::Deletion
            }
            DeliveryStatus::Pending | DeliveryStatus::InFlight => Self::Due,
            DeliveryStatus::Dead => Self::Dead,
            DeliveryStatus::Delivered | DeliveryStatus::Canceled | DeliveryStatus::Skipped => Self::Ended,
            DeliveryStatus::Paused => Self::Paused,
        }
    }

    /// The time by which `delivery`, which has this class, is ordered. Those attempted in order are in that of their events.
    pub(super) fn time_of(self, delivery: &Delivery) -> Timestamp {
        let at = match self {
            Self::Deletion | Self::Due if !delivery.in_order => delivery.next_attempt_at,
            Self::Dead | Self::Ended => delivery.finished_at,
            Self::Deletion | Self::Due | Self::Paused => None,
        };
        at.unwrap_or(delivery.created_at())
    }
}

/// Encodes a delivery without what its key or its event shows.
pub(super) fn encode_delivery(delivery: &Delivery) -> Result<Vec<u8>> {
    let created_at = delivery.created_at();
    to_json(&Delivery {
        submission: delivery.submission.filter(|_| delivery.event_type != EventType::SubmissionCompleted),
        next_attempt_at: delivery.next_attempt_at.filter(|at| *at != created_at),
        ..delivery.clone()
    })
}

/// Decodes a delivery that [`encode_delivery`] has encoded.
pub(super) fn decode_delivery(event: EventId, target: DeliveryTarget, body: &[u8]) -> Result<Delivery> {
    let mut delivery = Delivery { event, target, ..from_json("a delivery", body)? };
    if delivery.event_type == EventType::SubmissionCompleted {
        delivery.submission = Some(event.completed_submission());
    }
    if delivery.status == DeliveryStatus::Pending && delivery.next_attempt_at.is_none() {
        delivery.next_attempt_at = Some(delivery.created_at());
    }
    Ok(delivery)
}

impl FinishedAttempt {
    /// Whether `current` still waits for this attempt to end: nothing else has changed it.
    pub(super) fn is_of(&self, current: &Delivery) -> bool {
        current.is_waiting() && current.attempts == self.delivery.attempts
    }
}

impl AttemptEnd {
    /// Returns what `current` is after the attempt; `None` if it stays as it is. `is_in_trash` is about its submission.
    pub(super) fn apply(
        &self,
        current: &Delivery,
        schedule: &[i64],
        is_in_trash: bool,
        now: Timestamp,
    ) -> Option<Delivery> {
        match self {
            Self::Sent { report, jitter, to, .. } => {
                let new = current.finish_attempt(report, schedule, *jitter, now);
                Some(Delivery { to: to.clone(), ..new })
            }
            Self::Skipped => Some(current.ended(DeliveryStatus::Skipped, now)),
            Self::Canceled => Some(current.ended(DeliveryStatus::Canceled, now)),
            Self::NotSent => is_in_trash.then(|| current.paused()),
        }
    }
}
