//! Workspaces, their API keys, and the scopes of a key.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::open_enum::named_enum;
use crate::id::WorkspaceId;
use crate::secret::KeyId;

/// Owner of forms and keys. The unit of tenancy: nothing in one workspace is visible from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub name: String,
    pub created_at: Timestamp,
}

named_enum! {
    /// Permission of an API key.
    Scope {
        /// Read forms and submissions.
        Read = "read",
        /// Create submissions, and read a form's definition for that; nothing else.
        Submit = "submit",
        /// Create and change forms and submissions; includes `read` and `submit`.
        Write = "write",
        /// Manage keys and purge; includes `write`.
        Admin = "admin",
        /// Manage the server's workspaces.
        Operator = "operator",
    }
}

impl Scope {
    /// Whether this scope grants everything that `needed` grants.
    pub fn includes(self, needed: Self) -> bool {
        match self {
            Self::Admin => needed != Self::Operator,
            Self::Write => matches!(needed, Self::Write | Self::Read | Self::Submit),
            Self::Read | Self::Submit | Self::Operator => self == needed,
        }
    }
}

/// A credential of a workspace. Only the hash of the secret is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: KeyId,
    pub workspace: WorkspaceId,
    pub name: String,
    /// SHA-256 of the full text of the key.
    pub hash: [u8; 32],
    pub scopes: Vec<Scope>,
    pub created_at: Timestamp,
    /// When the key stops being valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The authenticated sender of a request, identified by its API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(Arc<ApiKey>);

impl Deref for Caller {
    type Target = ApiKey;

    fn deref(&self) -> &ApiKey {
        &self.0
    }
}

impl Caller {
    /// Creates the caller for `key`, whose secret was verified.
    pub fn authenticated(key: Arc<ApiKey>) -> Self {
        Self(key)
    }

    /// Whether one of the key's scopes includes `needed`.
    pub fn has_scope(&self, needed: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.includes(needed))
    }
}
