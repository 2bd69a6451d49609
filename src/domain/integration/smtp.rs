//! The operator's settings of mail: the server that sends it, and its sender.

use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use crate::domain::question::email_domain;

/// How a connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// TLS from the first byte (RFC 8314 §3.3).
    Tls,
    /// Plain until STARTTLS, which is required (RFC 3207).
    StartTls,
    /// Never encrypted; only on this machine.
    Plain,
}

/// The address of a mail server: `smtps://host`, `smtp://host` (STARTTLS) or `smtp+plain://localhost`, each with an optional
/// port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpUrl {
    pub security: SmtpSecurity,
    /// A name, or an IP address without brackets.
    pub host: String,
    pub port: u16,
}

/// A text is not the URL of a mail server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSmtpUrl {
    #[error(
        "smtp+plain:// sends mail unencrypted, and only to this machine, such as smtp+plain://127.0.0.1:25"
    )]
    NotLoopback,
    #[error("give the user name with --smtp-username and the password with --smtp-password-file")]
    HasCredentials,
    #[error(
        "expected smtps://HOST:PORT or smtp://HOST:PORT (STARTTLS), such as smtps://mail.example.com:465"
    )]
    Malformed,
}

impl FromStr for SmtpUrl {
    type Err = InvalidSmtpUrl;

    fn from_str(text: &str) -> Result<Self, InvalidSmtpUrl> {
        let url = Url::parse(text).map_err(|_error| InvalidSmtpUrl::Malformed)?;
        let (security, default_port) = match url.scheme() {
            "smtps" => (SmtpSecurity::Tls, 465),
            "smtp" => (SmtpSecurity::StartTls, 587),
            "smtp+plain" => (SmtpSecurity::Plain, 25),
            _ => return Err(InvalidSmtpUrl::Malformed),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidSmtpUrl::HasCredentials);
        }
        if !matches!(url.path(), "" | "/") || text.contains(['?', '#']) || url.port() == Some(0) {
            return Err(InvalidSmtpUrl::Malformed);
        }
        let host = url.host_str().and_then(parse_host).ok_or(InvalidSmtpUrl::Malformed)?;
        if security == SmtpSecurity::Plain && !is_loopback(&host) {
            return Err(InvalidSmtpUrl::NotLoopback);
        }
        Ok(Self { security, host, port: url.port().unwrap_or(default_port) })
    }
}

/// Returns the host in ASCII, without brackets. The URL standard leaves hosts of these schemes as they are.
fn parse_host(text: &str) -> Option<String> {
    Some(match Host::parse(text).ok()? {
        Host::Domain(name) => name,
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    })
}

fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost",
    }
}

/// The sender of all mail: an address, or a name and an address: `Example Forms <forms@example.com>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailFrom {
    pub name: Option<String>,
    pub address: String,
}

/// A text is not a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an address, or a name and an address, such as \"Example Forms <forms@example.com>\"")]
pub struct InvalidMailFrom;

/// Maximum characters of a sender's name.
const MAX_NAME: usize = 150;

impl FromStr for MailFrom {
    type Err = InvalidMailFrom;

    fn from_str(text: &str) -> Result<Self, InvalidMailFrom> {
        let (name, address) = match text.strip_suffix('>') {
            Some(rest) => rest.rsplit_once('<').ok_or(InvalidMailFrom)?,
            None => ("", text),
        };
        let name = name.trim();
        let quoted = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let name = quoted.unwrap_or(name);
        let is_valid = !name.contains(is_unsafe_in_header) && name.chars().nth(MAX_NAME).is_none();
        if !is_valid || name.contains(['"', '\\']) || email_domain(address).is_none() {
            return Err(InvalidMailFrom);
        }
        Ok(Self { name: Some(name.to_owned()).filter(|name| !name.is_empty()), address: address.to_owned() })
    }
}

/// Whether a character must not be in a name or subject: it ends the line, hides text or reorders what follows.
pub fn is_unsafe_in_header(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}
