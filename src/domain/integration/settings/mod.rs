//! Settings of integrations: the values of the members that their types declare.

mod earlier;
mod headers;
mod read;
mod secrets;
pub mod signing_secret;

use serde::{Deserialize, Serialize};
use url::Url;

use super::sealer::{PlanError, Sealer};
use super::spec::{IntegrationSpec, Member};
use crate::clock::Timestamp;
use crate::domain::json::{self, Object, Value};
use crate::domain::question::json::object;
use crate::secret::Secret;
use crate::vault::Sealed;

pub use headers::{MAX_HEADERS, header_field};
pub(super) use read::read_settings;
pub use read::{MAX_QUESTION_ID, MAX_URL};
pub(super) use secrets::check_bearer_token;

/// The name of the member that signs requests.
pub const SIGNING_SECRET: &str = "secret";

/// The name of the member with the file that is written.
pub(super) const PATH: &str = "path";

/// The values of declared members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "earlier::StoredSettings")]
pub struct Settings {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<(String, Setting)>,
    /// The secrets by the names of their members; those of headers by [`header_field`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<(String, SecretField)>,
    /// Of a URL that is secret as a whole: its host, and what identifies it without revealing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<SecretReceiver>,
    /// Replaced signing secrets, newest first; each signs too until its time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    previous: Vec<PreviousSecret>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Setting {
    Flag(bool),
    Number(i64),
    Text(String),
    Texts(Vec<String>),
    Headers(Vec<Header>),
}

/// The name of a header and its text; `None` if that is a secret.
type Header = (String, Option<String>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretField {
    pub sealed: Sealed,
    /// The environment variable that the author's file takes it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

impl SecretField {
    /// The secret as shown to readers: that it is set, and its environment variable.
    pub fn shown(&self) -> Value {
        object([("set", Some(true.into())), ("env", self.env.as_deref().map(Value::from))])
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SecretReceiver {
    host: String,
    digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub secret: SecretField,
    pub valid_until: Timestamp,
}

impl Settings {
    /// The members as shown to readers, in the order of `spec`: secrets only as that they are set.
    pub(super) fn members(&self, spec: &IntegrationSpec) -> Object {
        let show = |member: &Member| Some((member.name.to_owned(), self.shown(member)?));
        spec.members.iter().filter_map(show).collect()
    }

    fn shown(&self, member: &Member) -> Option<Value> {
        if member.is_secret() {
            return self.secret(member.name).map(SecretField::shown);
        }
        match self.value(member.name) {
            Some(value) => Some(self.shown_value(value)),
            // Stored before the type had the member.
            None => member.default().and_then(|text| json::parse(text).ok()),
        }
    }

    fn shown_value(&self, value: &Setting) -> Value {
        match value {
            Setting::Flag(flag) => (*flag).into(),
            Setting::Number(number) => (*number).into(),
            Setting::Text(text) => Value::from(&**text),
            Setting::Texts(texts) => texts.iter().map(String::as_str).collect(),
            Setting::Headers(headers) => {
                let show = |(name, text): &Header| {
                    let secret = || self.secret(&header_field(name)).map(SecretField::shown);
                    Some((name.clone(), text.as_deref().map(Value::from).or_else(secret)?))
                };
                Value::Object(headers.iter().filter_map(show).collect())
            }
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        if let Some(Setting::Text(text)) = self.value(name) { Some(text) } else { None }
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        if let Some(Setting::Number(number)) = self.value(name) { Some(*number) } else { None }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Setting::Flag(true)))
    }

    pub(super) fn texts(&self, name: &str) -> &[String] {
        if let Some(Setting::Texts(texts)) = self.value(name) { texts } else { &[] }
    }

    /// The names of headers with their texts, `None` for a secret.
    pub(super) fn headers(&self, name: &str) -> &[Header] {
        if let Some(Setting::Headers(headers)) = self.value(name) { headers } else { &[] }
    }

    pub(super) fn url(&self, name: &str) -> Result<Url, PlanError> {
        Url::parse(self.text(name).unwrap_or_default()).map_err(|_invalid| PlanError::Damaged)
    }

    /// Unseals the secret `name`; `None` if there is none.
    pub(super) fn open(&self, name: &str, sealer: Sealer<'_>) -> Result<Option<Secret<String>>, PlanError> {
        let secret = self.secret(name).map(|secret| sealer.open(name, &secret.sealed));
        Ok(secret.transpose()?)
    }

    /// The host of its secret URL; empty without one.
    pub(super) fn secret_host(&self) -> &str {
        self.receiver.as_ref().map_or("", |receiver| &receiver.host)
    }

    /// Identifies its secret URL: the same for two integrations with the same one.
    pub(super) fn secret_destination(&self) -> Option<String> {
        self.receiver.as_ref().map(|SecretReceiver { host, digest }| format!("{host}/{digest}"))
    }

    /// The replaced signing secrets, newest first.
    pub fn previous(&self) -> &[PreviousSecret] {
        &self.previous
    }

    /// Returns them with another signing secret, and these replaced ones.
    pub(super) fn with_signing_secret(&self, new: SecretField, previous: Vec<PreviousSecret>) -> Self {
        let replace = |(name, old): &(String, SecretField)| {
            (name.clone(), if name == SIGNING_SECRET { new.clone() } else { old.clone() })
        };
        Self { secrets: self.secrets.iter().map(replace).collect(), previous, ..self.clone() }
    }

    fn value(&self, name: &str) -> Option<&Setting> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub fn secret(&self, name: &str) -> Option<&SecretField> {
        self.secrets.iter().find(|(known, _)| known == name).map(|(_, secret)| secret)
    }
}

/// The host of `url`, with its port if it is an unusual one.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
