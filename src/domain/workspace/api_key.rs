//! API keys as they are stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Scope;
use crate::clock::Timestamp;
use crate::id::{FormId, FormRef, WorkspaceId};
use crate::secret::KeyId;

/// A credential of a workspace. Only the hash of the secret is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: KeyId,
    pub workspace: WorkspaceId,
    pub name: String,
    /// SHA-256 of the full text of the key.
    pub hash: [u8; 32],
    pub scopes: Vec<Scope>,
    /// The only forms that the key may be used for; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<Vec<FormId>>,
    pub created_at: Timestamp,
    /// When the key expires, and every key that replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The end of the grace period of a key that was rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

/// The authenticated sender of a request, identified by its API key.
pub type Caller = Arc<ApiKey>;

/// Parameters of [`ApiKey::rotate`].
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// Id and hash of the new key.
    pub id: KeyId,
    pub hash: [u8; 32],
    /// How long the old key stays valid.
    pub grace_millis: i64,
}

impl ApiKey {
    /// The name of the server operator's keys.
    pub const OPERATOR_NAME: &str = "operator";

    /// The scopes of the server operator's keys: together, all permissions.
    pub const OPERATOR_SCOPES: [Scope; 2] = [Scope::Admin, Scope::Operator];

    /// Creates a key of the server's operator, with all permissions.
    pub fn operator(workspace: WorkspaceId, id: KeyId, hash: [u8; 32], created_at: Timestamp) -> Self {
        let (name, scopes) = (Self::OPERATOR_NAME.to_owned(), Self::OPERATOR_SCOPES.to_vec());
        Self { id, workspace, name, hash, scopes, forms: None, created_at, expires_at: None, ends_at: None }
    }

    /// Creates the caller for the owner of a data directory, who needs no key. It has the scopes of the operator key of
    /// `workspace`, and a key id of zeros.
    pub fn local_operator(workspace: WorkspaceId) -> Caller {
        Arc::new(Self::operator(workspace, KeyId::ZERO, [0; 32], Timestamp::from_millis(0)))
    }

    /// Creates the first key of a new workspace, with all permissions there.
    pub fn admin(workspace: WorkspaceId, id: KeyId, hash: [u8; 32], created_at: Timestamp) -> Self {
        let (name, scopes) = ("admin".to_owned(), vec![Scope::Admin]);
        Self { name, scopes, ..Self::operator(workspace, id, hash, created_at) }
    }

    /// Creates the caller for a visitor of the page of `form`, who needs no key. It may read and submit to that form only.
    pub fn visitor(form: FormRef) -> Self {
        let key = Self::operator(form.workspace, KeyId::ZERO, [0; 32], Timestamp::from_millis(0));
        Self { name: "visitor".to_owned(), scopes: vec![Scope::Submit], forms: Some(vec![form.id]), ..key }
    }

    /// Whether one of the key's scopes includes `needed`.
    pub fn has_scope(&self, needed: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.includes(needed))
    }

    /// Whether the key may be used for `form`, if that is in its workspace.
    pub fn may_use(&self, form: FormId) -> bool {
        self.forms.as_ref().is_none_or(|forms| forms.contains(&form))
    }

    /// Returns when the key stops being valid: at its expiry or at the end of its grace period, whichever is earlier.
    pub fn end(&self) -> Option<Timestamp> {
        [self.expires_at, self.ends_at].into_iter().flatten().min()
    }

    /// Whether neither the expiry nor the end of the grace period has passed.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.end().is_none_or(|end| now < end)
    }

    /// Whether the key can be used to manage the keys of its workspace, and has not been replaced.
    pub fn manages_keys(&self, now: Timestamp) -> bool {
        let is_unlimited = self.forms.is_none() && self.ends_at.is_none();
        is_unlimited && self.has_scope(Scope::Admin) && self.is_valid(now)
    }

    /// Replaces the key by one with the same name, scopes, limits and expiry. Returns the new key, and the old one until
    /// the end of the grace period, never later than it would end now; `None` if it ends at once.
    pub fn rotate(self, rotation: &Rotation, now: Timestamp) -> (Self, Option<Self>) {
        let new =
            Self { id: rotation.id, hash: rotation.hash, created_at: now, ends_at: None, ..self.clone() };
        let grace_end = Timestamp::from_millis(now.millis().saturating_add(rotation.grace_millis));
        let ends_at = Some(self.ends_at.map_or(grace_end, |earlier| earlier.min(grace_end)));
        let old = Self { ends_at, ..self };
        (new, Some(old).filter(|old| old.is_valid(now)))
    }

    /// Returns the key without its hash, for a record that outlives it.
    #[must_use]
    pub fn without_hash(&self) -> Self {
        Self { hash: [0; 32], ..self.clone() }
    }
}
