//! Integrations: what a form sends elsewhere, and how each kind turns an event into an outbound request.
//!
//! Kinds only plan. One module of `delivery` opens sockets and files.
//!
//! To add a type: a file with what it [is](spec) and what it sends (the trait `Kind`, or the struct `Chat` for messages), and
//! its two lines in [`IntegrationType`].

pub mod address;
mod answers;
pub mod chat;
pub mod csv_file;
pub mod definition;
pub mod email;
pub mod event;
pub mod google_sheets;
mod kind;
pub mod message;
pub mod outbound;
pub mod plan;
pub mod row;
mod sealer;
pub mod secret_members;
pub mod settings;
pub mod smtp;
pub mod spec;
pub mod template;
mod test_event;
pub mod webhook;

use serde::{Deserialize, Serialize};

use self::event::EventType;
use self::kind::Kind;
use self::settings::Settings;
use self::spec::{IntegrationSpec, Member, Pace, WriteMode};
use crate::clock::Timestamp;
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
    /// The number of each address, by which deliveries name theirs; empty if they are numbered in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub address_numbers: Vec<u8>,
    /// How it is written in `notifications` of its form, if it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<NotificationStyle>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How a notification is written: the short form of an `email` integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationStyle {
    /// An address.
    Address,
    /// An object with the address as `email`.
    Object,
}

/// Answers that leave the server, by question id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldSelection {
    Only(Vec<String>),
    Except(Vec<String>),
}

named_enum! {
    /// The name of a type of integration: `type` on the wire.
    IntegrationType {
        Webhook = "webhook",
        CsvFile = "csv_file",
        Email = "email",
        Slack = "slack",
        Discord = "discord",
        Teams = "teams",
        Mattermost = "mattermost",
        GoogleChat = "google_chat",
        Telegram = "telegram",
        Matrix = "matrix",
        Ntfy = "ntfy",
        GoogleSheets = "google_sheets",
    }
}

impl IntegrationType {
    fn kind(self) -> &'static dyn Kind {
        match self {
            Self::Webhook => &webhook::Webhook,
            Self::CsvFile => &csv_file::CsvExport,
            Self::Email => &email::Email,
            Self::Slack => &chat::slack::SLACK,
            Self::Discord => &chat::discord::DISCORD,
            Self::Teams => &chat::teams::TEAMS,
            Self::Mattermost => &chat::mattermost::MATTERMOST,
            Self::GoogleChat => &chat::google_chat::GOOGLE_CHAT,
            Self::Telegram => &chat::telegram::TELEGRAM,
            Self::Matrix => &chat::matrix::MATRIX,
            Self::Ntfy => &chat::ntfy::NTFY,
            Self::GoogleSheets => &google_sheets::GoogleSheets,
        }
    }

    /// Returns the specification of the type: its name, members and limits.
    pub fn spec(self) -> &'static IntegrationSpec {
        self.kind().spec()
    }

    /// The members of all types; some have the same name.
    pub fn all_members() -> impl Iterator<Item = &'static Member> {
        Self::ALL.into_iter().flat_map(|one| one.spec().members)
    }
}

/// The type of an integration, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrationKind {
    #[serde(rename = "type")]
    pub integration_type: IntegrationType,
    #[serde(flatten)]
    pub settings: Settings,
}

impl Integration {
    pub fn type_name(&self) -> &'static str {
        self.kind.integration_type.name()
    }

    /// Whether an event of this type is owed to the integration.
    pub fn subscribes(&self, event: EventType) -> bool {
        self.enabled && self.events.contains(&event)
    }

    /// The addresses of a mail, each with deliveries of its own.
    pub fn addresses(&self) -> &[String] {
        self.kind.settings.texts(email::TO)
    }

    /// The numbers of the deliveries that an event has: one for each address, else only 0.
    pub fn recipients(&self) -> Vec<u8> {
        match &*self.address_numbers {
            [] => (0..self.addresses().len().max(1)).map(|number| number as u8).collect(),
            numbers => numbers.to_vec(),
        }
    }

    /// Returns the address with this number.
    pub fn address_of(&self, recipient: u8) -> Option<&String> {
        let position = self.recipients().into_iter().position(|number| number == recipient)?;
        self.addresses().get(position)
    }

    /// Returns it with its addresses numbered: one that `earlier` has keeps its number, another gets the lowest that is free. So
    /// deliveries stay with their address whatever its place, and those of an address that was replaced go to the new one.
    #[must_use]
    fn with_numbered_addresses(self, earlier: &Self) -> Self {
        let kept = |address: &String| {
            earlier.recipients().into_iter().find(|number| earlier.address_of(*number) == Some(address))
        };
        let kept: Vec<_> = self.addresses().iter().map(kept).collect();
        let mut free = (0..=u8::MAX).filter(|number| !kept.contains(&Some(*number)));
        let mut address_numbers: Vec<u8> =
            kept.iter().filter_map(|number| number.or_else(|| free.next())).collect();
        // The usual numbers are left out always, so that equal lists of addresses are stored alike.
        if address_numbers.iter().copied().eq(0..kept.len() as u8) {
            address_numbers.clear();
        }
        Self { address_numbers, ..self }
    }

    pub fn pace(&self) -> Pace {
        self.kind.integration_type.spec().pace
    }

    /// Whether it is a file that is written whole.
    pub fn is_file(&self) -> bool {
        self.pace().mode == WriteMode::Replace
    }

    /// Whether a delivery is attempted only after the earlier ones.
    pub fn is_in_order(&self) -> bool {
        self.pace().mode == WriteMode::Append
    }

    /// The short description of where it sends to, without secrets: a host, a file.
    pub fn target(&self) -> String {
        self.kind.integration_type.kind().target(&self.kind.settings)
    }

    /// Identifies the receiver, to limit the attempts in progress: a host and port, or a file.
    pub fn destination(&self) -> String {
        self.kind.integration_type.kind().destination(&self.kind.settings, self.id)
    }

    /// Identifies what takes one request after the other: the chat or spreadsheet, which other integrations may have too, or
    /// else the integration, until its settings change.
    pub fn pace_key(&self) -> String {
        match self.pace().concurrency {
            1 => self.destination(),
            _ => format!("{}/{}", self.id, self.updated_at),
        }
    }

    /// Returns the waits between attempts in milliseconds: its own, or those of the operator, or those of its type.
    pub fn retry_schedule<'a>(&'a self, default: Option<&'a [i64]>) -> &'a [i64] {
        self.retry.as_deref().or(default).unwrap_or(self.pace().schedule)
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
