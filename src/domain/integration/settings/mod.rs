//! Settings of the types that only declare their members.

mod read;

use serde::{Deserialize, Serialize};
use url::Url;

use super::description::{Description, Member, MemberValue};
use super::secret_field::SecretField;
use super::unsealer::{PlanError, Unsealer};
use crate::domain::json::Value;
use crate::secret::Secret;

pub use read::MAX_URL;
pub(super) use read::{SettingsDraft, read_settings};

/// Settings as shown, by name; those that are `None` are left out.
pub(super) type Members = Vec<(&'static str, Option<Value>)>;

/// The values of declared members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<(String, Setting)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<(String, SecretField)>,
    /// Of a URL that is secret as a whole: its host, and what identifies it without revealing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receiver: Option<SecretReceiver>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Setting {
    Flag(bool),
    Number(i64),
    Text(String),
    Texts(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SecretReceiver {
    host: String,
    digest: String,
}

impl Settings {
    /// The members as shown to readers, in the order of `description`.
    pub(super) fn members(&self, description: &Description) -> Members {
        let show = |member: &Member| {
            let shown = match member.value {
                MemberValue::Secret(_) | MemberValue::SecretUrl => {
                    self.secret(member.name).map(SecretField::shown)
                }
                _ => self.value(member.name).map(Setting::shown),
            };
            (member.name, shown)
        };
        description.members.iter().map(show).collect()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Setting::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Some(Setting::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Setting::Flag(true)))
    }

    pub(super) fn texts(&self, name: &str) -> &[String] {
        match self.value(name) {
            Some(Setting::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// The URL `name`.
    pub(super) fn url(&self, name: &str) -> Result<Url, PlanError> {
        Url::parse(self.text(name).unwrap_or_default()).map_err(|_invalid| PlanError::Damaged)
    }

    /// Unseals the secret `name`; `None` if there is none.
    pub(super) fn open(
        &self,
        name: &str,
        unsealer: Unsealer<'_>,
    ) -> Result<Option<Secret<String>>, PlanError> {
        let secret = self.secret(name).map(|secret| unsealer.open(name, &secret.sealed));
        Ok(secret.transpose()?)
    }

    /// The host of its secret URL; empty without one.
    pub(super) fn secret_host(&self) -> &str {
        self.receiver.as_ref().map_or("", |receiver| &receiver.host)
    }

    /// Identifies its secret URL: the same for two integrations with the same one.
    pub(super) fn secret_destination(&self) -> String {
        self.receiver
            .as_ref()
            .map_or_else(String::new, |SecretReceiver { host, digest }| format!("{host}/{digest}"))
    }

    fn value(&self, name: &str) -> Option<&Setting> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn secret(&self, name: &str) -> Option<&SecretField> {
        self.secrets.iter().find(|(known, _)| known == name).map(|(_, secret)| secret)
    }
}

impl Setting {
    fn shown(&self) -> Value {
        match self {
            Self::Flag(flag) => (*flag).into(),
            Self::Number(number) => (*number).into(),
            Self::Text(text) => Value::from(&**text),
            Self::Texts(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}
