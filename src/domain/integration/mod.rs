//! Integrations: what a form sends elsewhere, and how each kind turns an event into an outbound request.
//!
//! Kinds only plan. One module of `delivery` opens sockets and files.
//!
//! To add a kind: a folder with its settings, their parsing, and what it sends (the trait `Kind`); its names in
//! [`IntegrationType`] and [`IntegrationKind`]; the compiler reports the rest.

pub mod address;
pub mod csv_file;
pub mod definition;
pub mod event;
mod kind;
pub mod outbound;
pub mod plan;
pub mod secret_field;
pub mod smtp;
mod test_event;
pub mod webhook;

use serde::{Deserialize, Serialize};

use self::csv_file::CsvFile;
use self::event::EventType;
use self::kind::Kind;
use self::webhook::Webhook;
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::open_enum::named_enum;
use crate::id::IntegrationId;

/// Maximum integrations of a form.
pub const MAX_INTEGRATIONS: usize = 20;

/// A configured outbound effect of a form. Stored with the form; secrets are sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    pub id: IntegrationId,
    /// Written like a slug, unique in the form.
    pub name: String,
    pub enabled: bool,
    pub events: Vec<EventType>,
    /// The condition as written, JSON; an event whose submission does not satisfy it is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Box<str>>,
    /// Which answers leave the server; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldSelection>,
    /// Waits between attempts in milliseconds; `None` for the kind's schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Vec<i64>>,
    pub kind: IntegrationKind,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Answers that leave the server, by question id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldSelection {
    Only(Vec<String>),
    Except(Vec<String>),
}

named_enum! {
    /// The name of a kind of integration: `type` on the wire.
    IntegrationType {
        Webhook = "webhook",
        CsvFile = "csv_file",
    }
}

impl IntegrationType {
    /// The events that an integration of this type may subscribe to.
    pub fn events(self) -> &'static [EventType] {
        match self {
            Self::Webhook => &EventType::SUBSCRIBABLE,
            Self::CsvFile => &[EventType::SubmissionCompleted],
        }
    }
}

/// The kind of an integration, on the wire `type`, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IntegrationKind {
    Webhook(Webhook),
    CsvFile(CsvFile),
}

impl Integration {
    /// Whether an event of this type is owed to the integration.
    pub fn subscribes(&self, event: EventType) -> bool {
        self.enabled && self.events.contains(&event)
    }

    /// Whether `delivery` can be redelivered by hand. A row that was written cannot: each submission is one row.
    pub fn can_repeat(&self, delivery: &Delivery) -> bool {
        match &self.kind {
            IntegrationKind::Webhook(_) => true,
            IntegrationKind::CsvFile(_) => delivery.status != DeliveryStatus::Delivered,
        }
    }

    /// The settings, if it is a webhook.
    pub fn webhook(&self) -> Option<&Webhook> {
        match &self.kind {
            IntegrationKind::Webhook(webhook) => Some(webhook),
            IntegrationKind::CsvFile(_) => None,
        }
    }
}

impl IntegrationKind {
    pub fn integration_type(&self) -> IntegrationType {
        match self {
            Self::Webhook(_) => IntegrationType::Webhook,
            Self::CsvFile(_) => IntegrationType::CsvFile,
        }
    }

    /// The behaviour of the kind.
    fn behaviour(&self) -> &dyn Kind {
        match self {
            Self::Webhook(webhook) => webhook,
            Self::CsvFile(file) => file,
        }
    }

    /// The name of the type: `webhook`.
    pub fn type_name(&self) -> &'static str {
        self.integration_type().name()
    }
}

impl FieldSelection {
    /// Whether the answer to `question` leaves the server.
    pub fn includes(&self, question: &str) -> bool {
        match self {
            Self::Only(ids) => ids.iter().any(|id| id == question),
            Self::Except(ids) => ids.iter().all(|id| id != question),
        }
    }
}
