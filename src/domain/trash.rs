//! The trash: what goes into it, what comes back, and what has lain there for too long.

use super::admission::{Refusal, Shut};
use super::form::Form;
use crate::clock::{DAY_MILLIS, Timestamp};

/// What went to the trash before this moment is to be erased at `now`, if it stays for `days`.
pub fn horizon(now: Timestamp, days: u32) -> Timestamp {
    Timestamp::from_millis(now.millis() - i64::from(days) * DAY_MILLIS)
}

impl Form {
    /// The form as it lies in the trash from `now` on.
    pub fn trashed(&self, now: Timestamp) -> Self {
        Self { deleted_at: Some(now), revision: self.revision + 1, ..self.clone() }
    }

    /// The form as it was before it went to the trash. Refuses one that is not there.
    pub fn restored(&self) -> Result<Self, Refusal> {
        match self.deleted_at {
            Some(_) => Ok(Self { deleted_at: None, revision: self.revision + 1, ..self.clone() }),
            None => Err(Refusal::NotInTrash),
        }
    }

    /// Whether it went to the trash before `horizon`.
    pub fn is_due(&self, horizon: Timestamp) -> bool {
        self.deleted_at.is_some_and(|deleted| deleted < horizon)
    }

    /// Refuses to take a submission back among the `responses` it has, where `max_responses` leaves no room. Whether new
    /// ones are taken does not matter: this one was.
    pub fn seat(&self, responses: u64) -> Result<(), Refusal> {
        match self.settings.max_responses {
            Some(most) if responses >= most => Err(Refusal::shut(self, Shut::Full)),
            Some(_) | None => Ok(()),
        }
    }
}
