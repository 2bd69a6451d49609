//! Webhooks, as specified by Standard Webhooks 1.0.

mod definition;
mod kind;
mod payload;
pub mod signature;

use serde::{Deserialize, Serialize};
use url::Url;

use super::secret_field::SecretField;
use crate::clock::Timestamp;
use crate::domain::open_enum::named_enum;

/// Maximum secrets that sign at the same time.
pub const MAX_LIVE_SECRETS: usize = 5;

/// Begins every signing secret; base64 follows.
pub const SECRET_PREFIX: &str = "whsec_";

/// Maximum custom headers.
pub const MAX_HEADERS: usize = 20;

/// Maximum bytes of the value of a custom header.
pub const MAX_HEADER_VALUE: usize = 4_096;

/// Headers that the server sets itself, or that control the connection.
const RESERVED_HEADERS: [&str; 9] = [
    "host",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "user-agent",
];

/// Prefixes of the names of such headers.
const RESERVED_PREFIXES: [&str; 4] = ["content-", "proxy-", "webhook-", "forms-"];

/// Settings of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub url: String,
    /// Signs the requests: `whsec_` and base64.
    pub secret: SecretField,
    /// Replaced secrets, newest first; each signs too until its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<PreviousSecret>,
    pub payload: Payload,
    /// Additional headers, in the order written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, HeaderText)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_token: Option<SecretField>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub secret: SecretField,
    pub valid_until: Timestamp,
}

/// The value of a custom header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderText {
    Text(String),
    Secret(SecretField),
}

named_enum! {
    /// How much of a submission the body has.
    Payload {
        Full = "full",
        /// Ids only.
        Thin = "thin",
    }
}

impl Webhook {
    /// Names of the members with secrets, and of the places that these are sealed for.
    pub const SECRET: &str = "secret";
    pub const BEARER_TOKEN: &str = "bearer_token";
    pub const SECRETS: [&str; 2] = [Self::SECRET, Self::BEARER_TOKEN];

    /// The place that the secret value of the header `name` is sealed for.
    pub fn header_field(name: &str) -> String {
        format!("headers/{}", name.to_ascii_lowercase())
    }

    /// The host and port that it calls: `example.com`, `localhost:9000`.
    pub fn host(&self) -> String {
        let Ok(url) = Url::parse(&self.url) else { return String::new() };
        let host = url.host_str().unwrap_or_default();
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether `url` has the scheme, host and port of its own.
    fn has_origin_of(&self, url: &Url) -> bool {
        Url::parse(&self.url).is_ok_and(|own| own.origin() == url.origin())
    }

    /// The secret value of the header `name`, ignoring case.
    fn secret_header(&self, name: &str) -> Option<&SecretField> {
        self.headers.iter().find_map(|(known, value)| match value {
            HeaderText::Secret(secret) if known.eq_ignore_ascii_case(name) => Some(secret),
            HeaderText::Secret(_) | HeaderText::Text(_) => None,
        })
    }
}

/// Whether authors cannot set the header `name`.
fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED_HEADERS.contains(&name.as_str())
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
