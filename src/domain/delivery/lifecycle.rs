//! Changes of a delivery other than by its attempts, and what readers are shown of it.

use super::health::Health;
use super::{Delivery, DeliveryStatus};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::integration::event::EventType;
use crate::id::{EventId, FormId, IntegrationId, SubmissionId};

/// An event without its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHead {
    pub id: EventId,
    pub event_type: EventType,
    pub at: Timestamp,
    pub form: FormId,
    pub submission: Option<SubmissionId>,
}

impl EventHead {
    /// The event that `submission` was completed.
    pub fn of_completed(form: FormId, submission: SubmissionId) -> Self {
        Self {
            id: EventId::of_completed(submission),
            event_type: EventType::SubmissionCompleted,
            at: Timestamp::from_millis(submission.millis()),
            form,
            submission: Some(submission),
        }
    }
}

impl Delivery {
    /// Returns a delivery of `event` that is due at once.
    pub fn new(event: EventHead, integration: IntegrationId) -> Self {
        Self {
            event: event.id,
            event_type: event.event_type,
            form: event.form,
            submission: event.submission,
            integration,
            status: DeliveryStatus::Pending,
            attempts: 0,
            paced: 0,
            earlier_attempts: 0,
            is_manual: false,
            next_attempt_at: Some(event.at),
            last_error: None,
            duration_ms: None,
            created_at: event.at,
            finished_at: None,
        }
    }

    /// Whether it waits, and no attempt is in flight.
    pub fn is_waiting(&self) -> bool {
        matches!(self.status, DeliveryStatus::Pending | DeliveryStatus::Paused)
    }

    /// Returns it waiting for its submission to be restored.
    #[must_use]
    pub fn paused(&self) -> Self {
        Self { status: DeliveryStatus::Paused, next_attempt_at: None, ..self.clone() }
    }

    /// Returns it pending again after a pause, due at `at`.
    #[must_use]
    pub fn resumed(&self, at: Timestamp) -> Self {
        Self { status: DeliveryStatus::Pending, next_attempt_at: Some(at), finished_at: None, ..self.clone() }
    }

    /// Returns it pending again at the beginning of its schedule, due at `at`.
    #[must_use]
    pub fn restarted(&self, at: Timestamp) -> Self {
        Self { earlier_attempts: self.attempts, paced: 0, ..self.resumed(at) }
    }

    /// Returns it as redelivered by hand: due at `at`, and at the beginning of its schedule.
    #[must_use]
    pub fn redelivered(&self, at: Timestamp) -> Self {
        Self { is_manual: true, ..self.restarted(at) }
    }

    #[must_use]
    pub fn canceled(&self, now: Timestamp) -> Self {
        self.ended(DeliveryStatus::Canceled, now)
    }

    #[must_use]
    pub fn skipped(&self, now: Timestamp) -> Self {
        self.ended(DeliveryStatus::Skipped, now)
    }

    fn ended(&self, status: DeliveryStatus, now: Timestamp) -> Self {
        Self { status, next_attempt_at: None, finished_at: Some(now), ..self.clone() }
    }

    /// Returns it as readers are shown it: one that waits is paused with its integration or its form, and canceled if its
    /// integration no longer exists. `health` is that of the integration.
    #[must_use]
    pub fn shown(self, form: &Form, health: &Health) -> Self {
        if !self.is_waiting() {
            return self;
        }
        let Some(integration) = form.integration(self.integration) else {
            return self.canceled(form.updated_at);
        };
        let is_form_waiting = form.deleted_at.is_some() && !self.event_type.is_deletion();
        if is_form_waiting || !integration.enabled || health.paused.is_some() {
            return self.paused();
        }
        self
    }
}
