//! Secrets in the settings of integrations: sealed in the store, never shown.

use serde::{Deserialize, Serialize};

use crate::domain::json::Value;
use crate::domain::question::json::object;
use crate::vault::Sealed;

/// A stored secret.
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
