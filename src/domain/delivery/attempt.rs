//! Attempts, and how their outcome changes a delivery.

use serde::{Deserialize, Serialize};

use super::{Delivery, DeliveryError, DeliveryStatus};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::open_enum::{OpenEnum, named_enum};

named_enum! {
    AttemptTrigger {
        Automatic = "automatic",
        Manual = "manual",
        Test = "test",
    }
}

named_enum! {
    AttemptResult {
        Delivered = "delivered",
        /// The receiver asked to be called later.
        Paced = "paced",
        Failed = "failed",
        /// The server stopped before the outcome was known; recorded by earlier versions.
        Interrupted = "interrupted",
    }
}

/// The log of one attempt, as it is stored and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    pub trigger: OpenEnum<AttemptTrigger>,
    pub started_at: Timestamp,
    pub duration_ms: u64,
    pub result: OpenEnum<AttemptResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DeliveryError>,
    /// The beginning of the receiver's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_address: Option<String>,
}

/// Outcome of an attempt, with its details for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendReport {
    pub outcome: Outcome,
    pub http_status: Option<u16>,
    /// The beginning of the receiver's answer, at most 2 KiB.
    pub response: Option<String>,
    pub remote_address: Option<String>,
    pub duration_ms: u64,
    /// Milliseconds before which the receiver takes no other request.
    pub hold_ms: i64,
}

impl SendReport {
    /// The report of an attempt without an answer.
    pub fn new(outcome: Outcome, duration_ms: u64) -> Self {
        let (http_status, response, remote_address) = (None, None, None);
        Self { outcome, http_status, response, remote_address, duration_ms, hold_ms: 0 }
    }
}

impl From<Outcome> for SendReport {
    fn from(outcome: Outcome) -> Self {
        Self::new(outcome, 0)
    }
}

/// The class of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// The receiver asked to be called again no sooner than after this many milliseconds.
    Paced {
        wait_ms: i64,
        error: DeliveryError,
    },
    /// May succeed later. `is_slow`: overload or a timeout, so that the next attempt waits at least a minute.
    Retryable {
        error: DeliveryError,
        is_slow: bool,
    },
    /// Cannot succeed.
    Permanent {
        error: DeliveryError,
    },
    /// The receiver does not exist any more: the integration is paused.
    Gone {
        error: DeliveryError,
    },
}

/// The first 5 seconds to 24 hours of Standard Webhooks: 10 attempts within 75 hours and 35 minutes, in milliseconds.
pub const DEFAULT_SCHEDULE: [i64; 9] = [
    5_000,
    5 * 60_000,
    30 * 60_000,
    2 * 3_600_000,
    5 * 3_600_000,
    10 * 3_600_000,
    14 * 3_600_000,
    20 * 3_600_000,
    24 * 3_600_000,
];

/// Longest wait for a receiver that asks to be called later, in milliseconds.
pub const MAX_PACED_WAIT: i64 = 3_600_000;

/// Times that a receiver may ask for that; then an answer counts as a failure.
const MAX_PACED: u32 = 200;

/// Age of a delivery from which on it counts as a failure too, in milliseconds.
const MAX_PACED_AGE: i64 = 7 * DAY_MILLIS;

/// Shortest wait after overload or a timeout, in milliseconds.
const MIN_SLOW_WAIT: i64 = 60_000;

impl Delivery {
    /// Counts an attempt and applies its outcome: delivered, pending with the time of the next attempt, or dead.
    /// `schedule` has the waits in milliseconds; `jitter` is from 0.8 to 1.2.
    #[must_use]
    pub fn finish_attempt(&self, report: &SendReport, schedule: &[i64], jitter: f64, now: Timestamp) -> Self {
        let attempted = Self { is_manual: false, attempts: self.attempts + 1, ..self.clone() };
        match &report.outcome {
            Outcome::Delivered => {
                Self { last_error: None, ..attempted.ended(DeliveryStatus::Delivered, now) }
            }
            Outcome::Paced { wait_ms, error } => {
                let failed = attempted.with_error(error);
                let wait = (*wait_ms).clamp(0, MAX_PACED_WAIT);
                let age = now.millis() - self.created_at().millis();
                if self.uncounted >= MAX_PACED || age >= MAX_PACED_AGE {
                    return failed.after_failure(schedule, jitter, wait.max(MIN_SLOW_WAIT), now);
                }
                Self { uncounted: self.uncounted + 1, ..failed }.pending(now, wait)
            }
            Outcome::Retryable { error, is_slow } => {
                let least = if *is_slow { MIN_SLOW_WAIT } else { 0 };
                attempted.with_error(error).after_failure(schedule, jitter, least, now)
            }
            Outcome::Permanent { error } | Outcome::Gone { error } => {
                attempted.with_error(error).ended(DeliveryStatus::Dead, now)
            }
        }
    }

    /// Returns the log of the attempt that follows those counted.
    pub fn log_attempt(&self, started_at: Timestamp, report: &SendReport) -> Attempt {
        let trigger = if self.is_manual { AttemptTrigger::Manual } else { AttemptTrigger::Automatic };
        Attempt::new(self.attempts + 1, trigger, started_at, report)
    }

    /// Number of attempts that count towards the schedule.
    pub(super) fn counted_attempts(&self) -> u32 {
        self.attempts.saturating_sub(self.earlier_attempts).saturating_sub(self.uncounted)
    }

    /// Returns it waiting at least `least` milliseconds for the next attempt of `schedule`, or dead after the last.
    fn after_failure(self, schedule: &[i64], jitter: f64, least: i64, now: Timestamp) -> Self {
        let counted = usize::try_from(self.counted_attempts()).unwrap_or(usize::MAX);
        match schedule.get(counted.saturating_sub(1)) {
            Some(wait) => {
                let wait = (*wait as f64 * jitter).round() as i64;
                self.pending(now, wait.max(least))
            }
            None => self.ended(DeliveryStatus::Dead, now),
        }
    }

    fn with_error(self, error: &DeliveryError) -> Self {
        Self { last_error: Some(error.clone()), ..self }
    }
}

impl Attempt {
    /// The log of attempt `number`, which began at `started_at`.
    pub fn new(number: u32, trigger: AttemptTrigger, started_at: Timestamp, report: &SendReport) -> Self {
        Self {
            number,
            trigger: trigger.into(),
            started_at,
            duration_ms: report.duration_ms,
            result: report.outcome.result().into(),
            http_status: report.http_status,
            error: report.outcome.error().cloned(),
            response: report.response.clone(),
            remote_address: report.remote_address.clone(),
        }
    }
}

impl Outcome {
    pub fn result(&self) -> AttemptResult {
        match self {
            Self::Delivered => AttemptResult::Delivered,
            Self::Paced { .. } => AttemptResult::Paced,
            Self::Retryable { .. } | Self::Permanent { .. } | Self::Gone { .. } => AttemptResult::Failed,
        }
    }

    pub fn error(&self) -> Option<&DeliveryError> {
        match self {
            Self::Paced { error, .. }
            | Self::Retryable { error, .. }
            | Self::Permanent { error }
            | Self::Gone { error } => Some(error),
            Self::Delivered => None,
        }
    }
}
