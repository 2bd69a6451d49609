//! The sender of a request.

use std::ops::Deref;
use std::sync::Arc;

use super::{ApiKey, Scope};
use crate::clock::Timestamp;
use crate::id::{FormId, WorkspaceId};
use crate::secret::KeyId;

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

    /// Creates the caller for the owner of a data directory, who needs no key. It has the scopes of the operator key of
    /// `workspace`, and a key id of zeros.
    pub fn local_operator(workspace: WorkspaceId) -> Self {
        let created_at = Timestamp::from_millis(0);
        Self(Arc::new(ApiKey::operator(workspace, KeyId::ZERO, [0; 32], created_at)))
    }

    /// Whether one of the key's scopes includes `needed`.
    pub fn has_scope(&self, needed: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.includes(needed))
    }

    /// Whether the key may be used for `form`, if that is in its workspace.
    pub fn may_use(&self, form: FormId) -> bool {
        self.forms.as_ref().is_none_or(|forms| forms.contains(&form))
    }
}
