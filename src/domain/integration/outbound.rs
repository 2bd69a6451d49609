//! What a kind of integration wants sent: data for the module that opens sockets and files.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::clock::Timestamp;
use crate::domain::delivery::classify::{Classify, classify_webhook};
use crate::secret::Secret;

#[derive(Debug, Clone)]
pub enum Outbound {
    Http(HttpRequest),
    Mail(MailMessage),
    /// A row to append to a Google spreadsheet.
    Sheet(SheetRow),
}

/// A request over HTTP. Header values are secret: some are; the URL may be.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: &'static str,
    pub url: Url,
    pub headers: Vec<(String, Secret<String>)>,
    pub body: Vec<u8>,
    /// What must not be shown if the receiver sends it back.
    pub secrets: Vec<Secret<String>>,
    /// How the answer is understood.
    pub classify: Classify,
}

impl HttpRequest {
    /// A request without headers and secrets, whose answer is understood as that of a webhook.
    pub fn new(method: &'static str, url: Url, body: Vec<u8>) -> Self {
        Self { method, url, headers: Vec::new(), body, secrets: Vec::new(), classify: classify_webhook }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

/// The header that authorizes a request with `token` (RFC 6750 §2.1).
pub fn bearer(token: &Secret<String>) -> (String, Secret<String>) {
    ("Authorization".to_owned(), Secret::new(format!("Bearer {}", token.reveal())))
}

/// A row of a Google spreadsheet, by column. Cells are texts, numbers, truth values, `null`, or `{"date": …}` with what
/// spreadsheets read as a date, with or without a time.
#[derive(Debug, Clone, PartialEq)]
pub struct SheetRow {
    pub target: SheetTarget,
    pub id: String,
    pub submitted_at: serde_json::Value,
    /// Question ids with their cells.
    pub cells: Vec<(String, serde_json::Value)>,
}

/// A tab of a Google spreadsheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetTarget {
    pub spreadsheet_id: String,
    /// The name of the tab; `None` for the first one.
    pub sheet: Option<String>,
    /// The key with which it is accessed, as Google's JSON file has it.
    pub service_account: Secret<String>,
}

/// A mail to send. Its sender is a setting of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailMessage {
    /// The part of the `Message-ID` before the @: the delivery's id, the same on every attempt.
    #[serde(skip)]
    pub id: String,
    #[serde(skip)]
    pub to: String,
    /// An address; left out if it is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// When it happened: the header `Date`.
    pub date: Timestamp,
    /// What its `List-Id` names: the form. `None` for a confirmation.
    #[serde(default)]
    pub list: Option<String>,
    /// Whether it goes to the respondent, whose address anybody may have typed.
    pub is_confirmation: bool,
}
