//! Health of an integration: when the server pauses it.

use serde::{Deserialize, Serialize};

use super::Delivery;
use super::attempt::{Outcome, SendReport};
use crate::clock::Timestamp;

/// Time without success after which an integration is paused, in milliseconds.
const MAX_FAILING: i64 = 120 * 3_600_000;

/// Deliveries that must have failed too: the next may succeed although one fails for days.
const MIN_FAILURES: u32 = 5;

/// Whether the receiver of an integration accepts deliveries, judged by the last ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Since when every attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// Deliveries that failed since then.
    #[serde(default)]
    pub failures: u32,
    /// Why the server has paused the integration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

impl Health {
    /// Applies the outcome of an attempt of `delivery`, which counts it already. Pauses the integration after 120 hours
    /// without success and at least 5 failed deliveries, or at once if the receiver is gone.
    #[must_use]
    pub fn after(&self, delivery: &Delivery, report: &SendReport, now: Timestamp) -> Self {
        match &report.outcome {
            Outcome::Delivered => Self {
                failing_since: None,
                last_success_at: Some(now),
                failures: 0,
                paused: self.paused.clone(),
            },
            Outcome::Paced { .. } => self.clone(),
            Outcome::Retryable { .. } | Outcome::Permanent { .. } => {
                self.after_failure(delivery, now).paused_if_due(now)
            }
            Outcome::Gone { error } => {
                let failed = self.after_failure(delivery, now);
                Self { paused: failed.paused.clone().or_else(|| Some(error.message.clone())), ..failed }
            }
        }
    }

    /// Counts a failure; each delivery once, at its first.
    fn after_failure(&self, delivery: &Delivery, now: Timestamp) -> Self {
        let is_first = self.failures == 0 || delivery.counted_attempts() <= 1;
        Self {
            failing_since: self.failing_since.or(Some(now)),
            failures: self.failures.saturating_add(is_first.into()),
            ..self.clone()
        }
    }

    fn paused_if_due(self, now: Timestamp) -> Self {
        let is_due = self.failures >= MIN_FAILURES
            && self.failing_since.is_some_and(|since| now.millis() - since.millis() >= MAX_FAILING);
        let since = self.failing_since.filter(|_| is_due && self.paused.is_none());
        let reason = since.map(|since| format!("no delivery has succeeded since {since}"));
        Self { paused: reason.or(self.paused), ..self }
    }

    /// Ends a pause and begins to count anew.
    #[must_use]
    pub fn resumed(&self) -> Self {
        Self { last_success_at: self.last_success_at, ..Self::default() }
    }
}
