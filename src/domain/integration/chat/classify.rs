//! How the answers of chat services are understood.

use serde_json::Value;

use crate::domain::delivery::DeliveryError;
use crate::domain::delivery::attempt::Outcome;
use crate::domain::delivery::classify::{Classification, HttpAnswer};
use crate::domain::delivery::error_code::ErrorCode;

/// Maximum characters of a service's answer in an error.
const MAX_QUOTED: usize = 200;

/// Classifies an answer: a request that is refused would be refused again, unless it came too early or the service had a
/// fault. `is_gone`: whether the service says that the chat does not exist any more. `wait_ms`: how long it asks to wait, in
/// milliseconds, in its own way.
pub(super) fn classify_answer(
    answer: &HttpAnswer<'_>,
    is_gone: bool,
    wait_ms: Option<i64>,
) -> Classification {
    let standard = answer.standard_classification(wait_ms);
    let code = if is_gone { ErrorCode::Gone } else { ErrorCode::Refused };
    let message =
        format!("the service refused the message with status {}{}", answer.status, quoted(answer.body));
    let error = DeliveryError { http_status: Some(answer.status), ..code.error(message) };
    match (&standard.outcome, answer.status) {
        (Outcome::Delivered, _) => standard,
        _ if is_gone => Outcome::Gone { error }.into(),
        (_, 408 | 425 | 500..) | (Outcome::Paced { .. } | Outcome::Gone { .. }, _) => standard,
        _ => Outcome::Permanent { error }.into(),
    }
}

/// Returns the value at `path` in an answer in JSON.
pub(super) fn member(body: &str, path: &[&str]) -> Option<Value> {
    let answer: Value = serde_json::from_str(body).ok()?;
    path.iter().try_fold(&answer, |value, name| value.get(name)).cloned()
}

/// Returns seconds as whole milliseconds, rounded up.
pub(super) fn seconds_to_ms(seconds: f64) -> Option<i64> {
    // Saturates: what is larger is cut to the longest wait.
    (seconds >= 0.0).then(|| (seconds * 1_000.0).ceil() as i64)
}

/// Returns the beginning of an answer for the end of an error: `: no_service`; empty if there is none.
fn quoted(answer: &str) -> String {
    let text: String = answer.chars().filter(|found| !found.is_control()).take(MAX_QUOTED).collect();
    if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
}
