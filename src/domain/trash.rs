//! The trash of forms: moving there, restoring, and erasing after the retention period.

use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::form::Form;
use crate::domain::form::admission::{AcceptingReason, Refusal};

/// Returns the retention limit at `now`: objects deleted before it have been in the trash for more than `days`.
pub fn cutoff(now: Timestamp, days: u32) -> Timestamp {
    Timestamp::from_millis(now.millis() - i64::from(days) * DAY_MILLIS)
}

/// The time of the last maintenance, and how long erasing is still paused after a jump of the clock.
///
/// Without the pause, one start with a clock that is a month ahead would erase the whole trash for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockRecord {
    pub last: Timestamp,
    pub wait_millis: i64,
}

impl ClockRecord {
    /// Updates the record at `now`; to be called at every start and once an hour. A jump by more than a day makes the trash
    /// wait for a day of uptime; each call counts for an hour of that at most, so that restarts do not shorten it.
    pub fn next(earlier: Option<Self>, now: Timestamp) -> Self {
        let Some(earlier) = earlier else { return Self { last: now, wait_millis: 0 } };
        let passed = now.millis() - earlier.last.millis();
        let wait_millis = match passed > DAY_MILLIS {
            true => DAY_MILLIS,
            false => (earlier.wait_millis - passed.clamp(0, HOUR_MILLIS)).max(0),
        };
        Self { last: now, wait_millis }
    }
}

const HOUR_MILLIS: i64 = 60 * 60 * 1_000;

impl Form {
    /// Returns the form, moved to the trash at `now`.
    pub fn trashed(&self, now: Timestamp) -> Self {
        Self { deleted_at: Some(now), revision: self.revision + 1, ..self.clone() }
    }

    /// Returns the form, taken out of the trash.
    ///
    /// # Errors
    /// [`Refusal::NotInTrash`] if it is not there.
    pub fn restored(&self) -> Result<Self, Refusal> {
        match self.deleted_at {
            Some(_) => Ok(Self { deleted_at: None, revision: self.revision + 1, ..self.clone() }),
            None => Err(Refusal::NotInTrash),
        }
    }

    /// Whether the form was moved to the trash before `cutoff`.
    pub fn is_due(&self, cutoff: Timestamp) -> bool {
        self.deleted_at.is_some_and(|deleted| deleted < cutoff)
    }

    /// Checks that `max_responses` leaves room to restore a submission, beside the `responses` that the form has.
    ///
    /// Only the capacity counts: a closed or expired form accepted this submission earlier.
    pub fn check_capacity(&self, responses: u64) -> Result<(), Refusal> {
        match self.settings.max_responses {
            Some(most) if responses >= most => Err(Refusal::not_accepting(self, AcceptingReason::Full)),
            Some(_) | None => Ok(()),
        }
    }
}
