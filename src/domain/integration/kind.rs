//! What every kind of integration implements.

use super::definition::draft_kind::{DraftInput, KindDraft};
use super::definition::secret_input::Sealer;
use super::description::Description;
use super::event::Event;
use super::outbound::Outbound;
use super::plan::{PlanError, PlannedAttempt, Unsealer};
pub(super) use super::settings::Members;
use super::settings::{Settings, SettingsDraft, read_settings};
use super::{FieldSelection, Integration, IntegrationKind};
use crate::domain::delivery::Delivery;
use crate::domain::form::{Form, Version};
use crate::domain::validation::fields::Fields;
use crate::id::IntegrationId;

/// A kind of integration, with its settings.
pub(super) trait Kind {
    /// The settings as shown to readers, and accepted as input.
    fn members(&self) -> Members;

    /// Where it sends to, without secrets: a host, a file.
    fn target(&self) -> String;

    /// Identifies the receiver of the integration `id`, to limit the attempts in progress.
    fn destination(&self, id: IntegrationId) -> String;

    /// Renders the body of a delivery; `None` if the kind does not report the event.
    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody>;

    /// Plans an attempt with a body that it has rendered.
    fn plan(&self, attempt: PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<Outbound, PlanError>;

    fn pace(&self) -> Pace;

    /// How many addresses it sends to, each with a delivery of its own: 1 to 16.
    fn recipients(&self) -> u8 {
        1
    }

    /// Whether a delivery is attempted only after the earlier ones.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Whether it is a file that is written whole, and so carries out all its deliveries together.
    fn is_file(&self) -> bool {
        false
    }

    /// Whether `delivery` can be redelivered by hand.
    fn can_repeat(&self, _delivery: &Delivery) -> bool {
        true
    }

    /// The members that name questions of type `email`, with the ids.
    fn email_questions(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// The settings of a type that only [declares](Declared) its members.
    fn declared_settings(&self) -> Option<&Settings> {
        None
    }
}

/// A kind as its type describes and reads it.
pub(super) trait Described: Sized {
    const DESCRIPTION: Description;

    /// Parses the members of the type.
    fn read(fields: &mut Fields<'_, '_>, input: DraftInput<'_>) -> Option<KindDraft>;
}

/// A kind whose members are declared by its description.
pub(super) trait Declared: Sized + Into<IntegrationKind> + From<Settings> + AsRef<Settings> {
    const DESCRIPTION: Description;

    fn settings(&self) -> &Settings {
        self.as_ref()
    }

    /// Reports what the description of each member for itself cannot say.
    fn check(_draft: &SettingsDraft, _fields: &mut Fields<'_, '_>, _input: DraftInput<'_>) {}
}

impl<T: Declared> Described for T {
    const DESCRIPTION: Description = <T as Declared>::DESCRIPTION;

    fn read(fields: &mut Fields<'_, '_>, input: DraftInput<'_>) -> Option<KindDraft> {
        let before = fields.violations.len();
        let stored = input.current.and_then(Integration::settings);
        let draft = read_settings(&Self::DESCRIPTION, fields, stored, input);
        T::check(&draft, fields, input);
        if fields.violations.len() > before {
            return None;
        }
        let build = |current: Option<&Integration>, sealer: Sealer<'_>| {
            let settings = draft.build(current.and_then(Integration::settings), sealer);
            (T::from(settings).into(), None)
        };
        Some(KindDraft { path: None, build: Box::new(build) })
    }
}

/// Declares a kind that has settings and nothing else.
macro_rules! declared {
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

pub(super) use declared;

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
