//! From an event to a body, and from a body to an outbound request. Pure.

use super::Integration;
use super::event::{Event, EventType, Subject};
use super::kind::Rendering;
use super::outbound::Outbound;
pub use super::sealer::PlanError;
pub(super) use super::sealer::Sealer;
use crate::clock::Timestamp;
use crate::domain::condition::{Answer, Condition};
use crate::domain::form::{Form, Version};
use crate::domain::json::parse_object;
use crate::id::{DeliveryId, EventId};
use crate::vault::Vault;

/// One attempt of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct PlannedAttempt<'a> {
    pub event: EventId,
    pub delivery: DeliveryId,
    /// Counts from 1.
    pub number: u32,
    /// Number of attempts before the last manual redelivery, 0 without one.
    pub redelivery: u32,
    /// The address of the delivery; `None` for a kind without addresses, or if the integration does not have it any more.
    pub to: Option<&'a String>,
    pub body: &'a [u8],
    pub now: Timestamp,
}

impl Integration {
    /// Renders the body that `event` is delivered with, the same on every attempt; `None` if it is skipped. `version` is the
    /// version of the form that the submission was checked against; `None` for events without a submission.
    pub fn render(&self, event: &Event, form: &Form, version: Option<&Version>) -> Option<Vec<u8>> {
        let rendering = Rendering { event, form, version, selection: self.fields.as_ref() };
        let is_wanted = self.wants(event, version);
        is_wanted.then(|| self.kind.integration_type.kind().render(&self.kind.settings, rendering)).flatten()
    }

    /// Whether the condition holds for the answers of `event`. It does for an event without answers, and for a test.
    fn wants(&self, event: &Event, version: Option<&Version>) -> bool {
        let Subject::Submission(submission) = &event.subject else { return true };
        if self.when.is_none() || event.event_type == EventType::IntegrationTest {
            return true;
        }
        let condition = self.condition().zip(version);
        condition.is_some_and(|(condition, version)| holds(&condition, version, &submission.answers))
    }

    pub fn plan(
        &self,
        attempt: PlannedAttempt<'_>,
        form: &Form,
        vault: &Vault,
    ) -> Result<Outbound, PlanError> {
        let sealer = Sealer { workspace: form.workspace, integration: self.id, vault };
        self.kind.integration_type.kind().plan(&self.kind.settings, attempt, sealer)
    }
}

/// Whether `condition` holds for stored answers, a JSON object, to the questions of `version`.
pub(super) fn holds(condition: &Condition, version: &Version, answers: &str) -> bool {
    let answers = parse_object(answers).unwrap_or_default();
    condition.holds(&|id| {
        let question = version.questions.iter().find(|question| question.id.as_deref() == Some(id))?;
        let (_, value, _) = answers.iter().find(|(key, ..)| key == id)?;
        let rules = question.kind.rules();
        (!rules.is_empty(value)).then(|| Answer::new(value, rules))
    })
}
