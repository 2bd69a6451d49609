//! Mail, by SMTP or into a folder.
//!
//! ```text
//!  message     from a `MailMessage` to MIME
//!  smtp        the dialogue with the operator's mail server
//!  replies     from its replies to the report of an attempt
//!  stream      the connection: TLS, and a limit on what is received
//!  folder      files instead, for development
//! ```

mod folder;
mod message;
mod replies;
mod smtp;
mod stream;

use async_trait::async_trait;

use super::report;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::integration::outbound::MailMessage;

pub use folder::MailFolder;
pub use smtp::{SmtpMailer, SmtpSettings};

/// The bit of `settled` that an earlier attempt set because a recipient was refused.
pub const REFUSED: u16 = 1 << 15;

/// Sends mail.
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends `message` to its recipients that are not `settled`, within 30 seconds. Bit `n` of `settled` is recipient `n` of
    /// `to`; the report has those that need no other attempt, because the server accepted or refused them for good, and
    /// [`REFUSED`].
    async fn send(&self, message: &MailMessage, settled: u16) -> SendReport;
}

/// The mailer of a server without settings of mail: every attempt fails, and may succeed once there are some.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMailer;

#[async_trait]
impl Mailer for NoMailer {
    async fn send(&self, _message: &MailMessage, _settled: u16) -> SendReport {
        report::retryable("mail_not_configured", "the server has no --smtp-url or --mail-dir")
    }
}
