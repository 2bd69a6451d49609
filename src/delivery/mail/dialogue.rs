//! The dialogue with a mail server: commands, its replies or the lack of one, and the outcome of an attempt.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::Instant;

use super::message::clean_line;
use crate::delivery::redact::redact;
use crate::delivery::report::{self, retry};
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::error_code::ErrorCode;
use crate::request_error::certificate_fault;
use crate::secret::Secret;

/// Maximum characters of a message in a report.
const MAX_MESSAGE: usize = 300;

/// Maximum bytes of a reply; a line has 512 (RFC 5321 §4.5.3.1.5).
const MAX_REPLY: u64 = 16 << 10;

/// A connection, plain or encrypted.
pub(super) type Stream = BufReader<Box<dyn Duplex>>;

pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A reply (RFC 5321 §4.2): its code, from 200 to 599, and its text.
pub(super) struct Reply {
    pub(super) code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// Whether this reply to EHLO has the extension `name`.
    pub(super) fn has_extension(&self, name: &str) -> bool {
        self.lines.iter().skip(1).any(|line| line.eq_ignore_ascii_case(name))
    }

    /// Whether this reply to EHLO has AUTH with the mechanism `name` (RFC 4954 §3).
    pub(super) fn has_mechanism(&self, name: &str) -> bool {
        self.lines.iter().skip(1).any(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().is_some_and(|first| first.eq_ignore_ascii_case("AUTH"))
                && words.any(|mechanism| mechanism.eq_ignore_ascii_case(name))
        })
    }
}

/// What a command is about, which decides what its refusal means.
#[derive(Clone, Copy)]
pub(super) enum About<'a> {
    /// The connection, which the operator may mend: the code of a refusal.
    Connection(ErrorCode),
    /// The mail: its sender, its recipient or the message.
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

    /// Sends a command, and returns the reply unless that is a refusal.
    pub(super) async fn command(
        &mut self,
        stream: &mut Stream,
        command: &str,
        about: About<'_>,
    ) -> Result<Reply, Outcome> {
        send(stream, format!("{command}\r\n").as_bytes()).await.map_err(|error| connection_error(&error))?;
        self.reply(stream, about).await
    }

    /// Sends a message after DATA, and reads whether it is accepted.
    pub(super) async fn send_message(&mut self, stream: &mut Stream, message: &[u8]) -> Result<(), Outcome> {
        send(stream, &with_end(message)).await.map_err(|error| connection_error(&error))?;
        let reply = self.reply(stream, About::Mail("the message")).await?;
        if reply.code < 300 { Ok(()) } else { Err(invalid_reply()) }
    }

    /// Reads a reply; the outcome if it is a refusal.
    pub(super) async fn reply(&mut self, stream: &mut Stream, about: About<'_>) -> Result<Reply, Outcome> {
        let reply = read_reply(stream).await.map_err(|error| connection_error(&error))?;
        if reply.code < 400 {
            let text = reply.lines.last().map_or("", |line| line);
            self.response = Some(self.clean(&format!("{} {text}", reply.code)));
            return Ok(reply);
        }
        let line = self.clean(&format!("{} {}", reply.code, reply.lines.join(" ")));
        self.response = Some(line.clone());
        Err(match (reply.code, about) {
            // Must authenticate first, or otherwise; the operator can mend it (RFC 4954 §6).
            (530 | 534 | 535 | 538, _) => retry(ErrorCode::SmtpAuthFailed, line),
            (..500, About::Connection(_)) => retry(ErrorCode::SmtpDeferred, line),
            (_, About::Connection(code)) => retry(code, line),
            (..500, About::Mail(what)) => {
                retry(ErrorCode::SmtpDeferred, self.clean(&format!("{what} was deferred: {line}")))
            }
            (_, About::Mail(what)) => {
                let message = self.clean(&format!("{what} was refused: {line}"));
                Outcome::Permanent { error: ErrorCode::SmtpRejected.error(message) }
            }
        })
    }

    /// Returns the report of a dialogue that began at `started`.
    pub(super) fn into_report(self, result: Result<(), Outcome>, started: Instant) -> SendReport {
        let outcome = result.err().unwrap_or(Outcome::Delivered);
        let remote_address = self.remote_address.map(|address| address.to_string());
        SendReport {
            response: self.response,
            remote_address,
            ..SendReport::new(outcome, report::millis(started))
        }
    }

    /// Returns a text of the server in one short line without secrets: it may send back what it got.
    fn clean(&self, text: &str) -> String {
        let line = clean_line(&redact(text.as_bytes(), self.secrets));
        line.chars().take(MAX_MESSAGE).collect()
    }
}

pub(super) async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Returns a message with the line that ends it. A line that begins with a dot gets another (RFC 5321 §4.5.2).
fn with_end(message: &[u8]) -> Vec<u8> {
    let mut sent = Vec::with_capacity(message.len() + 64);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            sent.push(b'.');
        }
        sent.extend_from_slice(line);
    }
    sent.extend_from_slice(if sent.ends_with(b"\r\n") { b".\r\n" } else { b"\r\n.\r\n" });
    sent
}

pub(super) async fn read_reply(stream: &mut Stream) -> io::Result<Reply> {
    let mut limited = stream.take(MAX_REPLY);
    let mut reply = Reply { code: 0, lines: Vec::new() };
    loop {
        let mut line = Vec::new();
        limited.read_until(b'\n', &mut line).await?;
        if !line.ends_with(b"\n") && limited.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&line);
        let (code, is_last, text) = parse_line(&line).ok_or(io::ErrorKind::InvalidData)?;
        if !reply.lines.is_empty() && code != reply.code {
            return Err(io::ErrorKind::InvalidData.into());
        }
        reply.code = code;
        reply.lines.push(text.to_owned());
        if is_last {
            return Ok(reply);
        }
    }
}

/// Returns the code of a line, whether it is the last one of the reply, and its text.
fn parse_line(line: &str) -> Option<(u16, bool, &str)> {
    let (code, rest) = line.strip_suffix('\n')?.trim_end_matches('\r').split_at_checked(3)?;
    let code = code.parse().ok().filter(|code| (200..600).contains(code))?;
    let text = if rest.is_empty() { rest } else { rest.strip_prefix([' ', '-'])? };
    Some((code, !rest.starts_with('-'), text))
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
