//! Secrets in the settings of integrations: sealed in the store, never shown.

use serde::{Deserialize, Serialize};

use crate::domain::json::Value;
use crate::domain::question::json::object;
use crate::vault::Sealed;

/// Last characters of a secret that are shown.
pub const HINT_CHARACTERS: usize = 4;

/// Characters from which on a secret has a hint.
pub const MIN_HINTED: usize = 16;

/// A stored secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretField {
    pub sealed: Sealed,
    /// The last four characters, of a secret of at least 16 characters, unless there are control characters among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The environment variable that the author's file takes it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

impl SecretField {
    /// The secret as shown to readers: that it is set, its last characters, and its environment variable.
    pub fn shown(&self) -> Value {
        object([
            ("set", Some(true.into())),
            ("hint", self.hint.as_ref().map(|hint| Value::String(format!("…{hint}")))),
            ("env", self.env.as_deref().map(Value::from)),
        ])
    }
}
