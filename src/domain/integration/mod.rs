//! Integrations: what a form sends elsewhere, and how each kind turns an event into an outbound request.
//!
//! Kinds only plan. One module of `delivery` opens sockets and files.
//!
//! To add a kind: a file with what it [is](spec), what it sends (the trait `Kind`, or `Chat` for messages), and its
//! line in [`kinds`](IntegrationType).

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
pub mod secret_field;
pub mod settings;
pub mod smtp;
pub mod spec;
pub mod template;
mod test_event;
mod unsealer;
pub mod webhook;

use serde::{Deserialize, Serialize};

use self::csv_file::CsvExport;
use self::definition::draft_input::DraftInput;
use self::event::EventType;
use self::kind::{HasSpec, Kind};
use self::settings::{Settings, SettingsDraft};
use self::spec::{IntegrationSpec, Member};
use self::webhook::Webhook;
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::open_enum::named_enum;
use crate::domain::validation::fields::Fields;
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

/// Declares the types of integration.
macro_rules! kinds {
    ($($name:ident = $text:literal: $kind:ty,)*) => {
        named_enum! {
            /// The name of a kind of integration: `type` on the wire.
            IntegrationType { $($name = $text,)* }
        }

        /// The kind of an integration, on the wire `type`, with its settings.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub enum IntegrationKind {
            $(#[serde(rename = $text)] $name($kind),)*
        }

        impl IntegrationType {
            /// What the type is and takes.
            pub fn spec(self) -> &'static IntegrationSpec {
                match self { $(Self::$name => const { &<$kind as HasSpec>::SPEC },)* }
            }

            /// Reports what the spec of each member for itself cannot say.
            fn check(self, draft: &SettingsDraft, fields: &mut Fields<'_, '_>, input: DraftInput<'_>) {
                match self { $(Self::$name => <$kind>::check(draft, fields, input),)* }
            }
        }

        impl IntegrationKind {
            fn new(integration_type: IntegrationType, settings: Settings) -> Self {
                match integration_type { $(IntegrationType::$name => Self::$name(settings.into()),)* }
            }

            pub fn integration_type(&self) -> IntegrationType {
                match self { $(Self::$name(_) => IntegrationType::$name,)* }
            }

            pub fn settings(&self) -> &Settings {
                match self { $(Self::$name(kind) => kind.settings(),)* }
            }

            /// The behaviour of the kind.
            fn behaviour(&self) -> &dyn Kind {
                match self { $(Self::$name(kind) => kind,)* }
            }
        }
    };
}

impl IntegrationType {
    /// The members of all types; some have the same name.
    pub fn all_members() -> impl Iterator<Item = &'static Member> {
        Self::ALL.into_iter().flat_map(|one| one.spec().members)
    }
}

kinds! {
    Webhook = "webhook": Webhook,
    CsvFile = "csv_file": CsvExport,
    Email = "email": email::Email,
    Slack = "slack": chat::slack::Slack,
    Discord = "discord": chat::discord::Discord,
    Teams = "teams": chat::teams::Teams,
    Mattermost = "mattermost": chat::mattermost::Mattermost,
    GoogleChat = "google_chat": chat::google_chat::GoogleChat,
    Telegram = "telegram": chat::telegram::Telegram,
    Matrix = "matrix": chat::matrix::Matrix,
    Ntfy = "ntfy": chat::ntfy::Ntfy,
    GoogleSheets = "google_sheets": google_sheets::GoogleSheets,
}

impl Integration {
    /// Whether an event of this type is owed to the integration.
    pub fn subscribes(&self, event: EventType) -> bool {
        self.enabled && self.events.contains(&event)
    }

    /// The addresses of a mail, each with deliveries of its own.
    pub fn addresses(&self) -> &[String] {
        if let IntegrationKind::Email(email) = &self.kind { email.addresses() } else { &[] }
    }

    /// How many addresses it sends to, each with a delivery of its own.
    pub fn recipients(&self) -> u8 {
        self.kind.behaviour().recipients()
    }

    /// Whether a delivery is attempted only after the earlier ones.
    pub fn is_in_order(&self) -> bool {
        self.kind.behaviour().is_in_order()
    }

    /// Whether it is a file that is written whole.
    pub fn is_file(&self) -> bool {
        self.kind.behaviour().is_file()
    }

    /// Whether `delivery` can be redelivered by hand. A row that was written cannot: each submission is one row.
    pub fn can_repeat(&self, delivery: &Delivery) -> bool {
        self.kind.behaviour().can_repeat(delivery)
    }
}

impl IntegrationKind {
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
