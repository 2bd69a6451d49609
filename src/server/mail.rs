//! The mailer that the settings ask for.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{ServerError, private_file};
use crate::config::MailConfig;
use crate::delivery::mail::{MailFolder, Mailer, NoMailer, SmtpMailer, SmtpSettings};
use crate::domain::integration::smtp::MailFrom;
use crate::secret::Secret;

/// Sender of mail that is written into a folder, if none is given (RFC 2606 §2).
const FOLDER_SENDER: &str = "forms@forms.invalid";

/// Returns the mailer, with the password read from its file.
pub(super) fn new_mailer(config: &MailConfig) -> Result<Arc<dyn Mailer>, ServerError> {
    config.check().map_err(|why| ServerError::InvalidConfig(why.to_owned()))?;
    Ok(match (&config.folder, smtp_mailer(config)?) {
        (Some(folder), _) => Arc::new(MailFolder::new(folder.clone(), sender(config))),
        (None, Some(mailer)) => Arc::new(mailer),
        (None, None) => Arc::new(NoMailer),
    })
}

/// Logs in to the mail server of the settings, if they name one, and sends nothing. Returns why mail could not be sent.
///
/// # Errors
/// If the settings cannot be used.
pub async fn check_mail(config: &MailConfig) -> Result<Option<String>, ServerError> {
    config.check().map_err(|why| ServerError::InvalidConfig(why.to_owned()))?;
    let Some(mailer) = smtp_mailer(config)? else { return Ok(None) };
    let refused = mailer.check().await.err();
    Ok(refused.and_then(|outcome| Some(outcome.error()?.message.clone())))
}

fn smtp_mailer(config: &MailConfig) -> Result<Option<SmtpMailer>, ServerError> {
    let Some(url) = config.smtp_url.clone() else { return Ok(None) };
    let credentials = match (&config.smtp_username, &config.smtp_password_file) {
        (Some(user), Some(file)) => Some((user.clone(), read_password(file)?)),
        _ => None,
    };
    Ok(Some(SmtpMailer::new(SmtpSettings { url, credentials, from: sender(config) })))
}

fn sender(config: &MailConfig) -> MailFrom {
    let default_sender = || MailFrom { name: None, address: FOLDER_SENDER.to_owned() };
    config.from.clone().unwrap_or_else(default_sender)
}

fn read_password(path: &Path) -> Result<Secret<String>, ServerError> {
    let failed = |source| ServerError::SmtpPassword { path: path.to_owned(), source };
    let bytes = private_file::read(path).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    parse_password(bytes).ok_or_else(|| failed(invalid()))
}

/// Parses a password of one line, whose end is not a part of it.
fn parse_password(bytes: Vec<u8>) -> Option<Secret<String>> {
    let text = String::from_utf8(bytes).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let is_line = !line.is_empty() && !line.contains(['\n', '\r', '\0']);
    is_line.then(|| Secret::new(line.to_owned()))
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "expected a password in one line")
}

#[cfg(test)]
mod tests {
    use super::parse_password;

    #[test]
    fn a_password_is_one_line() {
        let parse = |text: &str| parse_password(text.into()).map(|password| password.reveal().clone());
        for text in ["p w", "p w\n", "p w\r\n"] {
            assert_eq!(parse(text).as_deref(), Some("p w"), "{text:?}");
        }
        for text in ["", "\n", "a\nb", "a\0b"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
