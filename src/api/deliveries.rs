//! Deliveries on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema;
use crate::clock::Timestamp;
pub use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::{Delivery, DeliveryError, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::event::EventType;
use crate::domain::open_enum::OpenEnum;
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, SubmissionId};

/// One event owed to one integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDetail {
    pub id: DeliveryId,
    #[schema(value_type = schema::DeliveryStatusOrOther)]
    pub status: OpenEnum<DeliveryStatus>,
    /// The event that is delivered.
    pub event: EventRef,
    pub form_id: FormId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission_id: Option<SubmissionId>,
    /// Where it is sent.
    pub integration: IntegrationRef,
    /// The address of the mail; left out for other types, and for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub to: Option<String>,
    /// The number of attempts so far.
    pub attempts: u32,
    /// When the next attempt is due; left out if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Why the last attempt failed; left out if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<DeliveryError>,
    /// When the event happened.
    pub created_at: Timestamp,
    /// When it was delivered, failed for good, was canceled or skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// The event of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventRef {
    pub id: EventId,
    #[serde(rename = "type")]
    #[schema(value_type = schema::EventTypeOrOther)]
    pub event_type: OpenEnum<EventType>,
}

/// The integration of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntegrationRef {
    pub id: IntegrationId,
    /// Its name; left out if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its type, such as `webhook`; left out if it was deleted.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A page of deliveries, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeliveryList {
    /// The deliveries, newest event first.
    pub deliveries: Vec<DeliveryDetail>,
    /// The `cursor` of the next page; `null` on the last.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

/// The attempts of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AttemptList {
    /// The attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// How many deliveries an operation changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryCount {
    /// The number of deliveries.
    pub count: u64,
    /// `true` if the operation stopped at its limit of 10000 deliveries or of 10 seconds of searching: send it again for the others. Else
    /// left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(value_type = bool, required = false)]
    pub has_more: bool,
}

/// Statistics of the deliveries of one type of integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryTypeStats {
    /// The type of integration, such as `webhook`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of deliveries that wait for an attempt.
    pub pending: u64,
    /// The number of deliveries that are being attempted.
    pub in_flight: u64,
    /// The number of deliveries that wait for their integration to be enabled, or for a restore.
    pub paused: u64,
    /// The number of deliveries that failed for good.
    pub dead: u64,
    /// When the delivery that waits longest was due; left out if none waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_due_at: Option<Timestamp>,
    /// The number of deliveries that succeeded within 24 hours, counted by the hour.
    pub delivered_24h: u64,
}

/// Statistics of the workspace's deliveries.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeliveryStats {
    /// The types that have integrations or deliveries.
    pub types: Vec<DeliveryTypeStats>,
}

impl DeliveryDetail {
    /// Shows a delivery of `form`, with the address that it goes to, or went to, if its integration has addresses.
    pub fn new(delivery: &Delivery, form: &Form) -> Self {
        let integration = form.integration(delivery.target.integration);
        let current = integration.and_then(|one| one.address_of(delivery.target.recipient));
        let last = delivery.to.as_ref();
        let to = if delivery.status.is_final() { last.or(current) } else { current.or(last) };
        Self {
            id: delivery.id(),
            status: delivery.status.into(),
            event: EventRef { id: delivery.event, event_type: delivery.event_type.into() },
            form_id: delivery.form,
            submission_id: delivery.submission,
            integration: IntegrationRef {
                id: delivery.target.integration,
                name: integration.map(|integration| integration.name.clone()),
                kind: integration.map(|integration| integration.type_name().to_owned()),
            },
            to: to.cloned(),
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at,
            last_error: delivery.last_error.clone(),
            created_at: delivery.created_at(),
            finished_at: delivery.finished_at,
        }
    }
}
