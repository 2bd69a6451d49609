//! From an event to a body, and from a body to an outbound request. Pure.

use super::Integration;
use super::event::{Event, EventType, Subject};
pub use super::kind::RenderedBody;
use super::kind::Rendering;
use super::outbound::Outbound;
pub use super::unsealer::PlanError;
pub(super) use super::unsealer::Unsealer;
use crate::clock::Timestamp;
use crate::domain::condition::{Answer, Condition};
use crate::domain::form::{Form, Version};
use crate::domain::json::parse_object;
use crate::id::{DeliveryId, EventId};
use crate::vault::Vault;

/// A body that is kept from the first attempt on, so that every attempt sends the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    Body(RenderedBody),
    /// The integration's condition does not hold.
    Skipped,
}

/// One attempt of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct PlannedAttempt<'a> {
    pub event: EventId,
    pub delivery: DeliveryId,
    /// Counts from 1.
    pub number: u32,
    /// Number of attempts before the last manual redelivery, 0 without one.
    pub redelivery: u32,
    /// Place in the integration's list of addresses; 0 for a kind without one.
    pub recipient: usize,
    pub body: &'a [u8],
    pub now: Timestamp,
}

impl Integration {
    /// Renders the body that `event` is delivered with. `version` is the version of the form that the submission was
    /// checked against; `None` for events without a submission.
    pub fn render(&self, event: &Event, form: &Form, version: Option<&Version>) -> Rendered {
        if !self.wants(event, version) {
            return Rendered::Skipped;
        }
        let rendering = Rendering { event, form, version, selection: self.fields.as_ref() };
        self.kind.behaviour().render(rendering).map_or(Rendered::Skipped, Rendered::Body)
    }

    /// Whether the condition holds for the answers of `event`. It does for an event without answers, and for a test.
    fn wants(&self, event: &Event, version: Option<&Version>) -> bool {
        let Subject::Submission(submission) = &event.subject else { return true };
        if self.when.is_none() || event.event_type == EventType::IntegrationTest {
            return true;
        }
        let condition = self.condition();
        condition
            .zip(version)
            .is_some_and(|(condition, version)| holds(&condition, version, &submission.answers))
    }

    /// Plans an attempt.
    pub fn plan(
        &self,
        attempt: PlannedAttempt<'_>,
        form: &Form,
        vault: &Vault,
    ) -> Result<Outbound, PlanError> {
        let unsealer = Unsealer { workspace: form.workspace, integration: self.id, vault };
        self.kind.behaviour().plan(attempt, unsealer)
    }

    /// Identifies the receiver, to limit the attempts in progress: a host and port, or a file.
    pub fn destination(&self) -> String {
        self.kind.behaviour().destination(self.id)
    }

    /// Identifies what takes one request after the other: the chat or spreadsheet, which other integrations may have too, or
    /// else the integration, until its settings change.
    pub fn pace_key(&self) -> String {
        match self.max_concurrency() {
            1 => self.destination(),
            _ => format!("{}/{}", self.id, self.updated_at),
        }
    }

    /// Maximum attempts in progress for the same destination.
    pub fn max_concurrency(&self) -> usize {
        self.kind.behaviour().pace().concurrency
    }

    /// Milliseconds from one attempt to the next, as long as attempts succeed.
    pub fn interval_ms(&self) -> i64 {
        self.kind.behaviour().pace().interval_ms
    }

    /// Maximum deliveries carried out together, as one write.
    pub fn max_batch(&self) -> usize {
        self.kind.behaviour().pace().batch
    }

    /// Returns the waits between attempts in milliseconds: its own, or those of the operator, or those of its kind.
    pub fn retry_schedule<'a>(&'a self, default: Option<&'a [i64]>) -> &'a [i64] {
        self.retry.as_deref().or(default).unwrap_or(self.kind.behaviour().pace().schedule)
    }
}

/// Whether `condition` holds for stored answers, a JSON object, to the questions of `version`.
pub(super) fn holds(condition: &Condition, version: &Version, answers: &str) -> bool {
    let answers = parse_object(answers).unwrap_or_default();
    condition.holds(&|id| {
        let question = version.questions.iter().find(|question| question.id.as_deref() == Some(id))?;
        let (_, value, _) = answers.iter().find(|(key, ..)| key == id)?;
        let rules = question.kind.rules();
        let answer = Answer { value, value_type: rules.value_type(), max_length: rules.max_length() };
        (!rules.is_empty(value)).then_some(answer)
    })
}
