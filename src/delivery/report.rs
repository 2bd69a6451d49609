//! From the answer of a server, or the lack of one, to the report of an attempt.

use std::io;
use std::net::SocketAddr;

use tokio::task::JoinError;
use tokio::time::Instant;

use super::guard::ResolveError;
use super::redact::redact;
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::classify::{Classification, HttpAnswer};
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::address::AddressRefusal;
use crate::domain::integration::outbound::HttpRequest;
use crate::domain::integration::plan::PlanError;
use crate::request_error::{certificate_fault, find_cause, reason};

/// Maximum bytes of an answer in the log of attempts.
const MAX_EXCERPT: usize = 2 << 10;

/// The answer of a server, up to a limited length.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Those of [`READ_HEADERS`](crate::domain::delivery::classify::READ_HEADERS) that it has.
    pub headers: Vec<(&'static str, String)>,
    pub remote_address: Option<SocketAddr>,
    /// The body as received, in which the server may have repeated secrets.
    pub body: Vec<u8>,
    /// Whether `body` is all of it.
    pub is_complete: bool,
}

/// Milliseconds since then.
pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the report of an attempt that ended with `answer` at `now`.
pub(super) fn of_answer(answer: &Answer, request: &HttpRequest, now: Timestamp) -> SendReport {
    let Answer { status, headers, .. } = answer;
    let body = redact(&answer.body, &request.secrets);
    let Classification { outcome, hold_ms } =
        (request.classify)(&HttpAnswer { status: *status, headers, body: &body, now });
    SendReport { response: excerpt(&body), hold_ms, ..with_answer(answer, outcome) }
}

/// Returns the report of an attempt with this outcome of `answer`.
pub(super) fn with_answer(answer: &Answer, outcome: Outcome) -> SendReport {
    let remote_address = answer.remote_address.map(|address| address.to_string());
    SendReport { http_status: Some(answer.status), remote_address, ..outcome.into() }
}

/// The outcome of an attempt that panicked. The next one would too.
pub(super) fn panicked() -> Outcome {
    let error = ErrorCode::InternalPanic.error("a defect of the server ended the attempt");
    Outcome::Permanent { error }
}

/// Returns the outcome of an attempt that cannot be planned; `None` if its address does not exist any more.
pub(super) fn of_plan_error(cause: &PlanError) -> Option<Outcome> {
    match cause {
        // The operator may have started the server with another key.
        PlanError::Decrypt(error) => Some(retry(ErrorCode::SecretUnreadable, error.to_string())),
        PlanError::Damaged => Some(damaged()),
        PlanError::NoRecipient => None,
    }
}

pub(super) fn damaged() -> Outcome {
    Outcome::Permanent { error: ErrorCode::Damaged.error(PlanError::Damaged.to_string()) }
}

/// Returns the outcome of a mail that has to wait, since its form has sent as many as it may.
pub(super) fn rate_limited(wait_ms: i64) -> Outcome {
    let message = "the form has sent as many confirmations as it may within an hour";
    let error = ErrorCode::Throttled.error(message);
    Outcome::Paced { wait_ms, error }
}

/// Returns the outcome of an attempt to write a file: the owner may mend it.
pub(super) fn file_error(cause: &io::Error) -> Outcome {
    let text = cause.to_string();
    let message = text.split(" (os error").next().unwrap_or_default();
    retry(ErrorCode::FileError, message)
}

/// Returns the outcome of an attempt to write a file where there are none: the integration is paused.
pub(super) fn no_files() -> Outcome {
    let message = "this server stores in a database, and writes no CSV files";
    Outcome::Gone { error: ErrorCode::FileError.error(message) }
}

/// Returns the report of an attempt to write a file on a blocking thread.
pub(super) fn of_writing(written: Result<io::Result<()>, JoinError>) -> SendReport {
    match written {
        Ok(Ok(())) => Outcome::Delivered.into(),
        Ok(Err(error)) => file_error(&error).into(),
        Err(_panic) => panicked().into(),
    }
}

/// Returns the outcome of an attempt that may succeed later.
pub(super) fn retry(code: ErrorCode, message: impl Into<String>) -> Outcome {
    Outcome::Retryable { error: code.error(message), is_slow: false }
}

/// Classifies the failure of an exchange. The owner may mend names, certificates and servers, so these are tried again.
pub(super) fn failed(error: &reqwest::Error) -> Outcome {
    match find_cause::<ResolveError>(error) {
        Some(ResolveError::Refused(refusal)) => refused(refusal),
        Some(unresolved) => retry(ErrorCode::DnsError, unresolved.to_string()),
        None if error.is_timeout() => timed_out(),
        None => {
            let fault =
                certificate_fault(error).map(|fault| format!("the certificate is not trusted: {fault}"));
            retry(code(error), fault.unwrap_or_else(|| reason(error)))
        }
    }
}

/// The outcome if the URL or its host may not be called.
pub(super) fn refused(refusal: &AddressRefusal) -> Outcome {
    Outcome::Permanent { error: ErrorCode::BlockedAddress.error(refusal.to_string()) }
}

pub(super) fn timed_out() -> Outcome {
    Outcome::Retryable { error: ErrorCode::Timeout.error("no answer in time"), is_slow: true }
}

fn code(failed: &reqwest::Error) -> ErrorCode {
    if find_cause::<rustls::Error>(failed).is_some() {
        ErrorCode::TlsError
    } else if find_cause::<hyper::Error>(failed).is_some_and(hyper::Error::is_parse) {
        ErrorCode::InvalidResponse
    } else {
        ErrorCode::ConnectionFailed
    }
}

/// Returns the beginning of a body as text without control characters; `None` if it is empty.
pub(super) fn excerpt(body: &str) -> Option<String> {
    let mut text = String::new();
    for character in body.chars() {
        let is_plain = !character.is_control() || character == '\n' || character == '\t';
        let escaped: String = if is_plain { character.into() } else { character.escape_default().collect() };
        if text.len() + escaped.len() > MAX_EXCERPT {
            break;
        }
        text.push_str(&escaped);
    }
    Some(text).filter(|text| !text.is_empty())
}
