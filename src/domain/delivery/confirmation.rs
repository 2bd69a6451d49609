//! How often confirmations go to respondents, whose addresses anybody may have typed: so that nobody can flood a mailbox with
//! the help of a form.

use crate::clock::{DAY_MILLIS, Timestamp};

/// Confirmations of a form within an hour that a mail server accepts.
const MAX_PER_HOUR: u64 = 500;

const HOUR_MILLIS: i64 = 3_600_000;

/// The confirmations of a form that were permitted since the beginning of its hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfirmationHour {
    pub since: Timestamp,
    pub permitted: u64,
}

impl ConfirmationHour {
    /// Returns the hour that `now` is in: `last`, or a new one.
    pub fn at(last: Option<Self>, now: Timestamp) -> Self {
        let current = last.filter(|hour| is_within(hour.since, now, HOUR_MILLIS));
        current.unwrap_or(Self { since: now, permitted: 0 })
    }

    /// Returns it with another permit.
    ///
    /// # Errors
    /// If it has as many as it may: the milliseconds until the next hour.
    pub fn permit(self, now: Timestamp) -> Result<Self, i64> {
        if self.permitted >= MAX_PER_HOUR {
            return Err(HOUR_MILLIS - (now.millis() - self.since.millis()));
        }
        Ok(Self { permitted: self.permitted + 1, ..self })
    }

    /// Returns it without a permit that was not used.
    #[must_use]
    pub fn without_one(self) -> Self {
        Self { permitted: self.permitted.saturating_sub(1), ..self }
    }
}

/// Whether a respondent who was sent a confirmation at `sent_at` gets no other one.
pub fn is_recent(sent_at: Timestamp, now: Timestamp) -> bool {
    is_within(sent_at, now, DAY_MILLIS)
}

/// Whether `time` is at most `millis` before `now`. A time in the future is of a clock that was set back.
fn is_within(time: Timestamp, now: Timestamp, millis: i64) -> bool {
    (0..millis).contains(&(now.millis() - time.millis()))
}
