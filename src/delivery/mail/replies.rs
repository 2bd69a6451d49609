//! From the replies of a mail server, or the lack of one, to the outcome of an attempt.

use std::io;
use std::net::SocketAddr;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::response::Response;
use tokio::time::Instant;

use super::message::clean_line;
use crate::delivery::redact::redact;
use crate::delivery::report::{self, retry};
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::error_code::ErrorCode;
use crate::request_error::{certificate_fault, find_cause};
use crate::secret::Secret;

/// Maximum characters of a message in a report.
const MAX_MESSAGE: usize = 300;

/// A command that the server did not accept.
enum Refusal {
    /// 4xx: not now.
    Deferred(String),
    /// 5xx.
    Refused(String),
    /// The dialogue cannot go on.
    Ended(Outcome),
}

/// State of an SMTP dialogue, kept so that a timeout can report it.
pub(super) struct Dialogue<'a> {
    secrets: &'a [Secret<String>],
    /// The server's last line.
    response: Option<String>,
    pub(super) remote_address: Option<SocketAddr>,
}

impl<'a> Dialogue<'a> {
    pub(super) fn new(secrets: &'a [Secret<String>]) -> Self {
        Self { secrets, response: None, remote_address: None }
    }

    /// Reads the answer to a command about the connection, which the operator may mend: `refused` is the code of a refusal.
    pub(super) fn expect(
        &mut self,
        result: Result<Response, Error>,
        refused: ErrorCode,
    ) -> Result<Response, Outcome> {
        self.read(result).map_err(|refusal| match refusal {
            Refusal::Deferred(line) => retry(ErrorCode::SmtpDeferred, line),
            Refusal::Refused(line) => retry(refused, line),
            Refusal::Ended(outcome) => outcome,
        })
    }

    /// Reads the answer to a command about the mail: `what` is the sender, the recipient or the message.
    pub(super) fn expect_of(
        &mut self,
        what: &str,
        result: Result<Response, Error>,
    ) -> Result<Response, Outcome> {
        self.read(result).map_err(|refusal| match refusal {
            Refusal::Deferred(line) => {
                retry(ErrorCode::SmtpDeferred, self.clean(&format!("{what} was deferred: {line}")))
            }
            Refusal::Refused(line) => {
                let message = self.clean(&format!("{what} was refused: {line}"));
                Outcome::Permanent { error: ErrorCode::SmtpRejected.error(message) }
            }
            Refusal::Ended(outcome) => outcome,
        })
    }

    fn read(&mut self, result: Result<Response, Error>) -> Result<Response, Refusal> {
        let error = match result {
            Ok(response) => {
                let text = response.message().last().unwrap_or_default();
                self.response = Some(self.clean(&format!("{} {text}", response.code())));
                return Ok(response);
            }
            Err(error) => error,
        };
        let Some(code) = error.status() else { return Err(Refusal::Ended(without_answer(&error))) };
        let text = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let line = self.clean(&format!("{code} {text}"));
        self.response = Some(line.clone());
        Err(match u16::from(code) {
            // Must authenticate first, or otherwise; the operator can mend it (RFC 4954 §6).
            530 | 534 | 535 | 538 => Refusal::Ended(retry(ErrorCode::SmtpAuthFailed, line)),
            400..=499 => Refusal::Deferred(line),
            _ => Refusal::Refused(line),
        })
    }

    /// Returns the report of a dialogue that began at `started`.
    pub(super) fn into_report(self, result: Result<(), Outcome>, started: Instant) -> SendReport {
        let outcome = result.err().unwrap_or(Outcome::Delivered);
        let duration_ms = report::millis(started);
        let remote_address = self.remote_address.map(|address| address.to_string());
        SendReport { response: self.response, remote_address, ..SendReport::new(outcome, duration_ms) }
    }

    /// Returns a text of the server in one short line without secrets: it may send back what it got.
    fn clean(&self, text: &str) -> String {
        let line = clean_line(&redact(text.as_bytes(), self.secrets));
        line.chars().take(MAX_MESSAGE).collect()
    }
}

pub(super) fn invalid_reply() -> Outcome {
    retry(ErrorCode::InvalidResponse, "its answer is not SMTP")
}

/// The outcome of a dialogue that has no answer.
fn without_answer(error: &Error) -> Outcome {
    find_cause::<io::Error>(error).map_or_else(invalid_reply, connection_error)
}

/// The outcome of a failed TLS handshake.
pub(super) fn handshake_error(error: &io::Error) -> Outcome {
    let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) else {
        return connection_error(error);
    };
    let message = match (certificate_fault(cause), cause) {
        (Some(fault), _) => format!("the certificate is not trusted: {fault}"),
        (None, rustls::Error::InvalidMessage(_)) => "it does not answer in TLS".to_owned(),
        (None, _) => cause.to_string(),
    };
    retry(ErrorCode::TlsError, message)
}

pub(super) fn connection_error(error: &io::Error) -> Outcome {
    let text = match error.kind() {
        io::ErrorKind::InvalidData => return invalid_reply(),
        io::ErrorKind::TimedOut => return report::timed_out(),
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    };
    retry(ErrorCode::ConnectionFailed, text)
}
