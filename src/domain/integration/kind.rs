//! The trait that every type of integration implements.

use super::FieldSelection;
use super::event::Event;
use super::outbound::Outbound;
use super::plan::{PlanError, PlannedAttempt, Sealer};
use super::settings::Settings;
use super::spec::IntegrationSpec;
use crate::domain::form::{Form, Version};
use crate::domain::validation::fields::Fields;
use crate::id::IntegrationId;

/// The behaviour of a type of integration, given the settings of one.
pub(super) trait Kind: Sync {
    fn spec(&self) -> &IntegrationSpec;

    /// Reports what the spec of each member for itself cannot say.
    fn check(&self, _settings: &Settings, _fields: &mut Fields<'_, '_>) {}

    /// Where it sends to, without secrets: a host, a file.
    fn target(&self, settings: &Settings) -> String;

    /// Identifies the receiver of the integration `id`, to limit the attempts in progress.
    fn destination(&self, settings: &Settings, id: IntegrationId) -> String;

    /// Renders the body of a delivery; `None` if the type does not report the event.
    fn render(&self, settings: &Settings, rendering: Rendering<'_>) -> Option<Vec<u8>>;

    /// Plans an attempt with a body that it has rendered.
    fn plan(
        &self,
        settings: &Settings,
        attempt: PlannedAttempt<'_>,
        sealer: Sealer<'_>,
    ) -> Result<Outbound, PlanError>;
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
