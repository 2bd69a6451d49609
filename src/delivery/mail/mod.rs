//! Mail, by SMTP or into a folder.
//!
//! ```text
//!  message     from a `MailMessage` to MIME
//!  smtp        connections to the operator's mail server
//!  dialogue    commands and replies, and what these mean for an attempt
//!  folder      files instead, for development
//! ```

mod dialogue;
mod folder;
mod message;
mod smtp;

use async_trait::async_trait;

use super::report;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::outbound::MailMessage;

pub use folder::MailFolder;
pub use smtp::{SmtpMailer, SmtpSettings};

/// Sends mail.
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends `message`: within 30 seconds, and 10 minutes if the server takes so long to answer to the message itself.
    async fn send(&self, message: &MailMessage) -> SendReport;
}

/// The mailer of a server without settings of mail: every attempt fails, and may succeed once there are some.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMailer;

#[async_trait]
impl Mailer for NoMailer {
    async fn send(&self, _message: &MailMessage) -> SendReport {
        report::retryable(ErrorCode::MailNotConfigured, "the server has no --smtp-url or --mail-dir")
    }
}
