//! Classifies the answers of receivers over HTTP.

use super::DeliveryError;
use super::attempt::{MAX_PACED_WAIT, Outcome};
use super::error_code::ErrorCode;
use crate::clock::Timestamp;

/// Wait for a receiver that asks to be called later, and not when, in milliseconds.
const DEFAULT_PACED_WAIT: i64 = 60_000;

/// Shortest wait for one that does, in milliseconds.
const MIN_PACED_WAIT: i64 = 1_000;

/// An answer over HTTP, as far as it is read.
#[derive(Debug, Clone, Copy)]
pub struct HttpAnswer<'a> {
    pub status: u16,
    /// The headers [`READ_HEADERS`] that it has.
    pub headers: &'a [(&'static str, String)],
    /// The beginning of the body, without secrets.
    pub body: &'a str,
    /// When it was received.
    pub now: Timestamp,
}

/// Headers of answers that are read, in lower case.
pub const READ_HEADERS: [&str; 3] = ["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset-after"];

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    pub outcome: Outcome,
    /// Milliseconds before which the receiver takes no other request.
    pub hold_ms: i64,
}

/// How the answers of a receiver are understood.
pub type Classify = fn(&HttpAnswer<'_>) -> Classification;

impl From<Outcome> for Classification {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, hold_ms: 0 }
    }
}

/// Classifies the answer of a webhook: only 2xx is success; redirects are never followed.
pub fn classify_webhook(answer: &HttpAnswer<'_>) -> Classification {
    answer.standard_classification(None)
}

impl HttpAnswer<'_> {
    /// The header `name`, one of [`READ_HEADERS`].
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    /// Classifies the answer by its status and the header `Retry-After`, or the wait in milliseconds that the receiver asked
    /// for otherwise.
    pub fn standard_classification(&self, wait_ms: Option<i64>) -> Classification {
        let asked = self.header("retry-after").and_then(|text| parse_retry_after(text, self.now));
        let wait = wait_ms.map(|wait| wait.clamp(MIN_PACED_WAIT, MAX_PACED_WAIT)).or(asked);
        classify(self.status, wait).into()
    }
}

fn classify(status: u16, wait: Option<i64>) -> Outcome {
    let error =
        |code: ErrorCode, message: String| DeliveryError { http_status: Some(status), ..code.error(message) };
    match (status, wait) {
        (200..=299, _) => Outcome::Delivered,
        (410, _) => {
            Outcome::Gone { error: error(ErrorCode::Gone, "the receiver answered 410 Gone".to_owned()) }
        }
        (429, _) | (503, Some(_)) => Outcome::Paced {
            wait_ms: wait.unwrap_or(DEFAULT_PACED_WAIT),
            error: error(
                ErrorCode::RateLimited,
                format!("the receiver asked to be called later, with status {status}"),
            ),
        },
        (300..=399, _) => Outcome::Retryable {
            error: error(
                ErrorCode::Redirect,
                format!("the receiver redirected with status {status}: use its final URL"),
            ),
            is_slow: false,
        },
        _ => Outcome::Retryable {
            error: error(ErrorCode::HttpError, format!("the receiver answered with status {status}")),
            is_slow: matches!(status, 502 | 504 | 520..=529),
        },
    }
}

/// Parses `Retry-After` (RFC 9110 §10.2.3), seconds or a date, as a wait in milliseconds from one second to one hour; `None`
/// if it is neither. Fractions of a second, which some services send, are accepted.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<i64> {
    let text = text.trim();
    let is_number = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let wait = if is_number {
        // Saturates: a number of any length is a valid one.
        (text.parse::<f64>().ok()? * 1_000.0).ceil() as i64
    } else {
        Timestamp::parse_http_date(text)?.millis().saturating_sub(now.millis())
    };
    Some(wait.clamp(MIN_PACED_WAIT, MAX_PACED_WAIT))
}
