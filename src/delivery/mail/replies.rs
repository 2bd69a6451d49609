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

/// The part of a dialogue that a command belongs to, which decides how its refusal is classified.
#[derive(Clone, Copy)]
pub(super) enum Concern<'a> {
    /// The connection, which the operator may mend: a refusal has this code.
    Connection(ErrorCode),
    /// The sender, the recipient or the message.
    Mail(&'a str),
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

    /// Reads the answer to a command.
    pub(super) fn expect(
        &mut self,
        result: Result<Response, Error>,
        concern: Concern<'_>,
    ) -> Result<Response, Outcome> {
        let error = match result {
            Ok(response) => {
                let text = response.message().last().unwrap_or_default();
                self.response = Some(self.clean(&format!("{} {text}", response.code())));
                return Ok(response);
            }
            Err(error) => error,
        };
        let Some(code) = error.status() else {
            return Err(find_cause::<io::Error>(&error).map_or_else(invalid_reply, connection_error));
        };
        let text = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let line = self.clean(&format!("{code} {text}"));
        self.response = Some(line.clone());
        Err(match (u16::from(code), concern) {
            // Must authenticate first, or otherwise; the operator can mend it (RFC 4954 §6).
            (530 | 534 | 535 | 538, _) => retry(ErrorCode::SmtpAuthFailed, line),
            (400..=499, Concern::Connection(_)) => retry(ErrorCode::SmtpDeferred, line),
            (400..=499, Concern::Mail(what)) => {
                retry(ErrorCode::SmtpDeferred, self.clean(&format!("{what} was deferred: {line}")))
            }
            (_, Concern::Connection(refused)) => retry(refused, line),
            (_, Concern::Mail(what)) => {
                let message = self.clean(&format!("{what} was refused: {line}"));
                Outcome::Permanent { error: ErrorCode::SmtpRejected.error(message) }
            }
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
