//! Mail, by SMTP or into a folder.
//!
//! ```text
//!  message     from a `MailMessage` to MIME
//!  smtp        the dialogue with the operator's mail server
//!  replies     from its replies to the outcome of an attempt
//!  stream      the connection: TLS, and a limit on what is received
//!  folder      files instead, for development
//! ```

mod folder;
mod message;
mod replies;
mod smtp;
mod stream;

use async_trait::async_trait;

use super::report::retry;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::outbound::MailMessage;

pub use folder::MailFolder;
pub use smtp::{SmtpMailer, SmtpSettings};

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
        retry(ErrorCode::MailNotConfigured, "the server has no --smtp-url or --mail-dir").into()
    }
}
