//! From the replies of a mail server, or the lack of one, to the report of an attempt.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::response::Response;

use super::REFUSED;
use super::message::{BuiltMail, clean_line};
use crate::delivery::report;
use crate::domain::delivery::DeliveryError;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::request_error::{certificate_fault, find_cause};
use crate::secret::Secret;

/// Maximum characters of a message in a report.
const MAX_MESSAGE: usize = 300;

/// Why an attempt ended early. The next one may succeed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) is_slow: bool,
}

impl Failure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_slow: false }
    }

    pub(super) fn timeout() -> Self {
        Self { is_slow: true, ..Self::new("timeout", "no answer in time") }
    }

    pub(super) fn invalid_reply() -> Self {
        Self::new("invalid_response", "its answer is not SMTP")
    }

    /// The failure of a TLS handshake.
    pub(super) fn of_handshake(error: &io::Error) -> Self {
        let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) else {
            return Self::of_io(error);
        };
        Self::new(
            "tls_error",
            match (certificate_fault(cause), cause) {
                (Some(fault), _) => format!("the certificate is not trusted: {fault}"),
                (None, rustls::Error::InvalidMessage(_)) => "it does not answer in TLS".to_owned(),
                (None, _) => cause.to_string(),
            },
        )
    }

    pub(super) fn of_io(error: &io::Error) -> Self {
        let text = match error.kind() {
            io::ErrorKind::InvalidData => return Self::invalid_reply(),
            io::ErrorKind::TimedOut => return Self::timeout(),
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
        };
        Self::new("connection_failed", text)
    }
}

/// The answer to a command.
pub(super) enum Reply {
    Accepted(Response),
    /// 4xx: not now.
    Deferred(String),
    /// 5xx.
    Refused(String),
}

/// What is known of an attempt so far. Survives a timeout.
pub(super) struct Progress<'a> {
    mail: &'a BuiltMail,
    secrets: &'a [Secret<String>],
    settled: u16,
    /// The last recipient that was refused.
    refusal: Option<DeliveryError>,
    /// The last recipient that was deferred.
    deferral: Option<String>,
    /// The server's last line.
    response: Option<String>,
    pub(super) remote_address: Option<SocketAddr>,
}

impl<'a> Progress<'a> {
    /// The beginning of an attempt. What is not an address is refused here.
    pub(super) fn new(
        mail: &'a BuiltMail,
        to: &[String],
        settled: u16,
        secrets: &'a [Secret<String>],
    ) -> Self {
        let (refusal, deferral, response, remote_address) = (None, None, None, None);
        let mut progress = Self { mail, secrets, settled, refusal, deferral, response, remote_address };
        if to.is_empty() {
            progress.settled |= REFUSED;
            progress.refusal = Some(error("invalid_recipient", "the message has no recipients"));
        }
        for (place, text) in to.iter().enumerate().take(mail.recipients.len()) {
            if mail.recipients[place].is_none() && settled & 1 << place == 0 {
                progress.settled |= 1 << place | REFUSED;
                let message = progress.clean(&format!("`{text}` is not a valid email address"));
                progress.refusal = Some(error("invalid_recipient", message));
            }
        }
        progress
    }

    /// The recipients that are not settled, each with its bit.
    pub(super) fn unsettled(&self) -> Vec<(u16, &'a Address)> {
        let recipients = self.mail.recipients.iter().enumerate();
        let bits = recipients.filter_map(|(place, address)| Some((1 << place, address.as_ref()?)));
        bits.filter(|(bit, _)| self.settled & bit == 0).collect()
    }

    /// Settles recipients whom the server accepted.
    pub(super) fn accept(&mut self, bits: u16) {
        self.settled |= bits;
    }

    /// Settles recipients whom the server refused: `what` is an address, or the message.
    pub(super) fn refuse(&mut self, bits: u16, what: &str, line: &str) {
        self.settled |= bits | REFUSED;
        self.refusal = Some(error("smtp_rejected", self.clean(&format!("{what} was refused: {line}"))));
    }

    pub(super) fn defer(&mut self, what: &str, line: &str) {
        self.deferral = Some(self.clean(&format!("{what} was deferred: {line}")));
    }

    /// Sorts the answer to a command. Those that end the dialogue are failures.
    pub(super) fn read(&mut self, result: Result<Response, Error>) -> Result<Reply, Failure> {
        let error = match result {
            Ok(response) => {
                let text = response.message().last().unwrap_or_default();
                self.response = Some(self.clean(&format!("{} {text}", response.code())));
                return Ok(Reply::Accepted(response));
            }
            Err(error) => error,
        };
        let Some(code) = error.status() else { return Err(failure(&error)) };
        let text = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let line = self.clean(&format!("{code} {text}"));
        self.response = Some(line.clone());
        match u16::from(code) {
            // Must authenticate first, or otherwise; the operator can mend it (RFC 4954 §6).
            530 | 534 | 535 | 538 => Err(Failure::new("smtp_auth_failed", line)),
            // The server closes the connection (RFC 5321 §3.8).
            421 => Err(Failure::new("smtp_deferred", line)),
            400..=499 => Ok(Reply::Deferred(line)),
            _ => Ok(Reply::Refused(line)),
        }
    }

    /// Like [`read`](Self::read), for commands without which nothing can be sent: `refused` is the code of a refusal.
    pub(super) fn expect(
        &mut self,
        result: Result<Response, Error>,
        refused: &'static str,
    ) -> Result<Response, Failure> {
        match self.read(result)? {
            Reply::Accepted(response) => Ok(response),
            Reply::Deferred(line) => Err(Failure::new("smtp_deferred", line)),
            Reply::Refused(line) => Err(Failure::new(refused, line)),
        }
    }

    /// Returns the report of an attempt that took `duration`. Recipients to try again come first: until none is left, the
    /// delivery cannot end. Then a refusal, also one of an earlier attempt, makes it permanent.
    pub(super) fn into_report(self, result: Result<(), Failure>, duration: Duration) -> SendReport {
        let outcome = if !self.unsettled().is_empty() {
            let deferral = self.deferral.map(|line| Failure::new("smtp_deferred", line));
            let failure = result.err().or(deferral).unwrap_or_else(Failure::invalid_reply);
            let Failure { code, message, is_slow } = failure;
            Outcome::Retryable { error: error(code, message), is_slow }
        } else if self.settled & REFUSED != 0 {
            let earlier = || error("smtp_rejected", "a recipient was refused in an earlier attempt");
            Outcome::Permanent { error: self.refusal.unwrap_or_else(earlier) }
        } else {
            Outcome::Delivered
        };
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let remote_address = self.remote_address.map(|address| address.to_string());
        let (response, settled) = (self.response, self.settled);
        SendReport { response, remote_address, settled, ..SendReport::new(outcome, duration_ms) }
    }

    /// Returns a text of the server in one short line without secrets: it may send back what it got.
    fn clean(&self, text: &str) -> String {
        let line = clean_line(&report::redact(text.as_bytes(), self.secrets));
        line.chars().take(MAX_MESSAGE).collect()
    }
}

/// The failure of a dialogue that has no answer.
fn failure(error: &Error) -> Failure {
    match find_cause::<io::Error>(error) {
        Some(cause) => Failure::of_io(cause),
        None => Failure::invalid_reply(),
    }
}

fn error(code: &str, message: impl Into<String>) -> DeliveryError {
    DeliveryError { code: code.to_owned(), message: message.into(), http_status: None }
}
