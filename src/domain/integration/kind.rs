//! What every kind of integration implements.

use super::FieldSelection;
use super::definition::draft_input::DraftInput;
use super::event::Event;
use super::outbound::Outbound;
use super::plan::{PlanError, PlannedAttempt, Unsealer};
use super::settings::{Settings, SettingsDraft};
use super::spec::IntegrationSpec;
use crate::domain::delivery::Delivery;
use crate::domain::form::{Form, Version};
use crate::domain::validation::fields::Fields;
use crate::id::IntegrationId;

/// A kind of integration, with its settings.
pub(super) trait Kind {
    /// Where it sends to, without secrets: a host, a file.
    fn target(&self) -> String;

    /// Identifies the receiver of the integration `id`, to limit the attempts in progress.
    fn destination(&self, id: IntegrationId) -> String;

    /// Renders the body of a delivery; `None` if the kind does not report the event.
    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody>;

    /// Plans an attempt with a body that it has rendered.
    fn plan(&self, attempt: PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<Outbound, PlanError>;

    fn pace(&self) -> Pace;

    /// Whether `delivery` can be redelivered by hand.
    fn can_repeat(&self, _delivery: &Delivery) -> bool {
        true
    }
}

/// A kind whose settings are the values of the members that its spec declares.
pub(super) trait HasSpec: From<Settings> + AsRef<Settings> {
    const SPEC: IntegrationSpec;

    fn settings(&self) -> &Settings {
        self.as_ref()
    }

    /// Reports what the spec of each member for itself cannot say.
    fn check(_draft: &SettingsDraft, _fields: &mut Fields<'_, '_>, _input: DraftInput<'_>) {}
}

/// Declares the struct of a kind.
macro_rules! kind {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name($crate::domain::integration::settings::Settings);

        impl From<$crate::domain::integration::settings::Settings> for $name {
            fn from(settings: $crate::domain::integration::settings::Settings) -> Self {
                Self(settings)
            }
        }

        impl AsRef<$crate::domain::integration::settings::Settings> for $name {
            fn as_ref(&self) -> &$crate::domain::integration::settings::Settings {
                &self.0
            }
        }
    };
}

pub(super) use kind;

/// An event to render, and what may be sent of it.
#[derive(Clone, Copy)]
pub(super) struct Rendering<'a> {
    pub event: &'a Event,
    pub form: &'a Form,
    /// The version of the form that the submission was checked against.
    pub version: Option<&'a Version>,
    pub selection: Option<&'a FieldSelection>,
}

/// The body of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedBody {
    pub bytes: Vec<u8>,
    /// The respondent who gets it: at most one a day.
    pub respondent: Option<String>,
}

impl From<Vec<u8>> for RenderedBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, respondent: None }
    }
}

/// How deliveries are attempted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Maximum attempts in progress for the same target.
    pub concurrency: usize,
    /// Maximum deliveries carried out together, as one write.
    pub batch: usize,
    /// Milliseconds from one attempt to the next, as long as attempts succeed.
    pub interval_ms: i64,
    /// Waits between attempts in milliseconds.
    pub schedule: &'static [i64],
}
