//! Changes of a delivery other than by its attempts, and what readers are shown of it.

use super::health::Health;
use super::{Delivery, DeliveryStatus};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::domain::integration::Integration;
use crate::domain::integration::event::{Event, EventType};
use crate::domain::integration::spec::WriteMode;
use crate::id::{DeliveryTarget, EventId, FormId, SubmissionId};

/// A change of a delivery by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManualChange {
    /// Makes it due after `wait_ms` milliseconds, with a new schedule unless it waits already.
    Redeliver { wait_ms: i64 },
    /// Cancels it, if it waits.
    Cancel,
}

impl Delivery {
    /// Returns a delivery of `event`, due at once, still without a target.
    pub fn of_event(event: &Event) -> Self {
        let Event { id, event_type, sequence, form, .. } = *event;
        Self { event_type, submission: event.submission(), ..Self::new(id, sequence, form) }
    }

    /// Returns a delivery of the completion of `submission`, due at once, still without a target.
    pub fn of_completed(form: FormId, submission: SubmissionId, sequence: u64) -> Self {
        let id = EventId::of_completed(submission);
        let event_type = EventType::SubmissionCompleted;
        Self { event_type, submission: Some(submission), ..Self::new(id, sequence, form) }
    }

    fn new(event: EventId, sequence: u64, form: FormId) -> Self {
        let next_attempt_at = Some(Timestamp::from_millis(event.millis()));
        Self { event, sequence, form, next_attempt_at, ..Self::default() }
    }

    /// Whether it waits, and no attempt is in flight.
    pub fn is_waiting(&self) -> bool {
        matches!(self.status, DeliveryStatus::Pending | DeliveryStatus::Paused)
    }

    /// When an attempt is due; at `now` if that is further away than its wait, since then the clock was set back.
    pub fn due_at(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.next_attempt_at?;
        Some(if due.millis() - now.millis() > self.wait_ms.max(0) { now } else { due })
    }

    /// Returns it waiting `wait_ms` milliseconds for its next attempt.
    #[must_use]
    pub fn pending(self, now: Timestamp, wait_ms: i64) -> Self {
        let due = Timestamp::from_millis(now.millis().saturating_add(wait_ms));
        let status = DeliveryStatus::Pending;
        Self { status, next_attempt_at: Some(due), wait_ms, finished_at: None, ..self }
    }

    /// Returns it waiting for its submission to be restored.
    #[must_use]
    pub fn paused(&self) -> Self {
        Self { status: DeliveryStatus::Paused, next_attempt_at: None, wait_ms: 0, ..self.clone() }
    }

    /// Returns it pending again at the beginning of its schedule, due after `wait_ms` milliseconds.
    #[must_use]
    pub fn restarted(&self, now: Timestamp, wait_ms: i64) -> Self {
        Self { earlier_attempts: self.attempts, uncounted: 0, ..self.clone() }.pending(now, wait_ms)
    }

    /// Returns it changed by hand; refused if the change cannot be made. One in flight is not sent again: it stays as it is.
    /// `integration` is that of the delivery, `None` if it was deleted.
    pub fn change(
        &self,
        change: ManualChange,
        integration: Option<&Integration>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let ManualChange::Redeliver { wait_ms } = change else {
            let canceled = Self { is_manual: false, ..self.ended(DeliveryStatus::Canceled, now) };
            return if self.is_waiting() { Ok(canceled) } else { Err(Refusal::NotPending) };
        };
        let deleted = Refusal::NotRepeatable("the integration of the delivery was deleted");
        let integration = integration.ok_or(deleted)?;
        // Each submission is one row.
        if self.status == DeliveryStatus::Delivered && integration.pace().mode != WriteMode::Message {
            return Err(Refusal::NotRepeatable("the row of the submission is in the file already"));
        }
        if !integration.recipients().contains(&self.target.recipient) {
            let why = "the integration no longer has the address of the delivery";
            return Err(Refusal::NotRepeatable(why));
        }
        let changed = match self.status {
            DeliveryStatus::InFlight => return Ok(self.clone()),
            status if status.is_final() => self.restarted(now, wait_ms),
            _ => self.clone().pending(now, wait_ms),
        };
        Ok(Self { is_manual: true, ..changed })
    }

    /// Returns it after its submission was erased: canceled as of its deletion, unless it has ended, and without what a receiver
    /// has answered.
    #[must_use]
    pub fn of_erased(&self, deleted: Timestamp) -> Self {
        let ended = match self.status.is_final() {
            true => self.clone(),
            false => self.ended(DeliveryStatus::Canceled, deleted),
        };
        Self { last_error: None, ..ended }
    }

    /// Returns it as it is owed to each address of `subscribers`.
    pub fn copies(&self, subscribers: &[&Integration]) -> Vec<Self> {
        let mut copies = Vec::new();
        for integration in subscribers {
            for recipient in integration.recipients() {
                let target = DeliveryTarget { integration: integration.id, recipient };
                copies.push(Self { target, in_order: integration.is_in_order(), ..self.clone() });
            }
        }
        copies
    }

    #[must_use]
    pub fn ended(&self, status: DeliveryStatus, now: Timestamp) -> Self {
        Self { status, next_attempt_at: None, wait_ms: 0, finished_at: Some(now), ..self.clone() }
    }

    /// Returns it as readers are shown it: one that waits is paused with its integration or its form, and canceled if its
    /// integration no longer exists. `health` is that of the integration.
    #[must_use]
    pub fn shown(self, form: &Form, health: &Health) -> Self {
        if !self.is_waiting() {
            return self;
        }
        let Some(integration) = form.integration(self.target.integration) else {
            return self.ended(DeliveryStatus::Canceled, form.updated_at);
        };
        let is_form_waiting = form.deleted_at.is_some() && !self.event_type.is_deletion();
        if is_form_waiting || !integration.enabled || health.paused.is_some() {
            return self.paused();
        }
        self
    }
}
