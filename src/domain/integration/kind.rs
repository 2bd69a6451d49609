//! What every kind of integration implements.

use super::FieldSelection;
use super::event::Event;
use super::outbound::Outbound;
use super::plan::{PlanError, PlannedAttempt, Unsealer};
use crate::domain::form::{Form, Version};
use crate::domain::json::Value;
use crate::id::IntegrationId;

/// Settings as shown, by name; those that are `None` are left out.
pub(super) type Members = Vec<(&'static str, Option<Value>)>;

/// A kind of integration, with its settings.
pub(super) trait Kind {
    /// The settings as shown to readers, and accepted as input.
    fn members(&self) -> Members;

    /// Where it sends to, without secrets: a host, a file.
    fn target(&self) -> String;

    /// Identifies the receiver of the integration `id`, to limit the attempts in progress.
    fn destination(&self, id: IntegrationId) -> String;

    /// Renders the body of a delivery; `None` if the kind does not report the event.
    fn render(&self, rendering: Rendering<'_>) -> Option<Vec<u8>>;

    /// Plans an attempt with a body that it has rendered.
    fn plan(&self, attempt: PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<Outbound, PlanError>;

    fn pace(&self) -> Pace;
}

/// An event to render, and what may be sent of it.
#[derive(Clone, Copy)]
pub(super) struct Rendering<'a> {
    pub event: &'a Event,
    pub form: &'a Form,
    /// The version of the form that the submission was checked against.
    pub version: Option<&'a Version>,
    pub selection: Option<&'a FieldSelection>,
}

/// How deliveries are attempted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Maximum attempts in progress for the same target.
    pub concurrency: usize,
    /// Maximum deliveries carried out together, as one write.
    pub batch: usize,
    /// Waits between attempts in milliseconds.
    pub schedule: &'static [i64],
}
