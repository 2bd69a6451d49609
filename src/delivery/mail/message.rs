//! MIME messages. Nothing in a subject, a name or an address can begin another header.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

use lettre::Address;
use lettre::error::Error;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MessageBuilder, MultiPart};

use crate::clock::Timestamp;
use crate::delivery::report;
use crate::domain::delivery::attempt::Outcome;
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::outbound::MailMessage;
use crate::domain::integration::smtp::{MailFrom, is_unsafe_in_header};

/// Maximum characters of a subject.
const MAX_SUBJECT: usize = 150;

/// Maximum bytes of an address (RFC 5321 §4.5.3.1.3, without the brackets around it).
const MAX_ADDRESS: usize = 254;

/// A message ready to be sent.
pub(super) struct BuiltMail {
    pub(super) sender: Address,
    pub(super) recipient: Address,
    pub(super) bytes: Vec<u8>,
}

/// Builds a message; the outcome if that is not possible.
pub(super) fn build(message: &MailMessage, from: &MailFrom) -> Result<BuiltMail, Outcome> {
    let Some(recipient) = parse_address(&message.to) else {
        let text = format!("`{}` is not a valid email address", clean_line(&message.to));
        return Err(Outcome::Permanent { error: ErrorCode::InvalidRecipient.error(text) });
    };
    catch_panic(|| try_build(message, recipient, from)).ok_or_else(report::panicked)
}

/// Calls `build`; `None` if that fails. The library is known to panic on some texts; that must not end the task.
fn catch_panic<T>(build: impl FnOnce() -> Result<T, Error>) -> Option<T> {
    // Nothing is shared with it that a panic could leave half changed.
    catch_unwind(AssertUnwindSafe(build)).ok()?.ok()
}

fn try_build(message: &MailMessage, recipient: Address, from: &MailFrom) -> Result<BuiltMail, Error> {
    let sender = parse_address(&from.address).ok_or(Error::MissingFrom)?;
    let name = from.name.as_deref().map(clean_line).filter(|name| !name.is_empty());
    let id = format!("<{}@{}>", clean_id(&message.id), sender.domain());
    let mut builder = MessageBuilder::new()
        .from(Mailbox::new(name, sender.clone()))
        .to(Mailbox::new(None, recipient.clone()))
        .subject(clean_subject(&message.subject))
        .date(system_time(message.date))
        .message_id(Some(id))
        // Asks programs that answer mail not to (RFC 3834 §5.1; Microsoft Exchange).
        .raw_header(header("Auto-Submitted", "auto-generated"))
        .raw_header(header("X-Auto-Response-Suppress", "All"));
    if let Some(list) = &message.list {
        // By which mail programs sort (RFC 2919).
        let list = format!("<{}.{}>", clean_id(list), sender.domain());
        builder = builder.raw_header(header("List-Id", &list));
    }
    if let Some(address) = message.reply_to.as_deref().and_then(parse_address) {
        builder = builder.reply_to(Mailbox::new(None, address));
    }
    let body = MultiPart::alternative_plain_html(clean_body(&message.text), clean_body(&message.html));
    Ok(BuiltMail { sender, recipient, bytes: builder.multipart(body)?.formatted() })
}

fn header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

/// Parses an address, whose domain is converted to ASCII: servers without SMTPUTF8 (RFC 6531) understand it too.
pub(super) fn parse_address(text: &str) -> Option<Address> {
    if text.len() > MAX_ADDRESS {
        return None;
    }
    let address: Address = text.parse().ok()?;
    let domain = if address.domain().is_ascii() {
        address.domain().to_owned()
    } else {
        idna::domain_to_ascii(address.domain()).ok()?
    };
    let is_plain = address.user().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if is_plain { Address::new(address.user(), domain).ok() } else { None }
}

/// Returns a name that is safe in a `Message-ID` and as the name of a file.
pub(super) fn clean_id(id: &str) -> String {
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    id.chars().filter(is_plain).collect()
}

/// Returns a subject of one line: without control characters and those that change the direction of writing.
fn clean_subject(subject: &str) -> String {
    let line = clean_line(subject);
    if line.chars().nth(MAX_SUBJECT).is_none() {
        return line;
    }
    line.chars().take(MAX_SUBJECT - 1).chain(['…']).collect()
}

/// Returns `text` in one line. What looks like an encoded word (RFC 2047 §2) would be decoded by its reader, into whatever it
/// encodes: a space makes it plain text.
pub(super) fn clean_line(text: &str) -> String {
    let spaced = text.replace(['\t', '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " ");
    let plain = spaced.replace(is_unsafe_in_header, "").replace("=?", "= ?");
    plain.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns a body whose lines end in CRLF, without other control characters than the tab.
fn clean_body(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_kept = |character: &char| !character.is_control() || matches!(character, '\n' | '\t');
    lines.chars().filter(is_kept).collect::<String>().replace('\n', "\r\n")
}

fn system_time(at: Timestamp) -> SystemTime {
    let since_epoch = Duration::from_millis(u64::try_from(at.millis()).unwrap_or(0));
    SystemTime::UNIX_EPOCH.checked_add(since_epoch).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use lettre::message::{Mailbox, MessageBuilder};

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let name = Some("Evil\r\nBcc: x@example.com".to_owned());
        let evil = Mailbox::new(name, "a@b.c".parse().unwrap());
        assert!(super::catch_panic(|| Ok(MessageBuilder::new().from(evil))).is_none());
    }
}
