//! API keys and workspaces on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema;
use crate::clock::Timestamp;
use crate::domain::open_enum::OpenEnum;
use crate::domain::workspace::{ApiKey, Scope, Workspace};
use crate::id::{FormId, WorkspaceId};
use crate::secret::{KeyId, KeyText, Secret};

/// A request for a new API key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewKey {
    pub name: String,
    /// Names of scopes.
    pub scopes: Vec<String>,
    /// Ids and slugs of the only forms that the key may be used for; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forms: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The id of the key's workspace, if it is not the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// A request to rotate an API key or a signing secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rotate {
    /// How long the old one stays valid, such as `24h`; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
}

/// A request for a new workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewWorkspace {
    pub name: String,
}

/// An API key.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyDetail {
    pub id: KeyId,
    /// The name.
    pub name: String,
    /// The scopes.
    #[schema(value_type = Vec<schema::ScopeOrOther>)]
    pub scopes: Vec<OpenEnum<Scope>>,
    /// The only forms that the key may be used for; left out if it may be used for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<Vec<FormId>>,
    /// When it stops being valid; left out if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub workspace: WorkspaceId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, to the minute; left out if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// The text of the key, for `Authorization: Bearer`; only in the response that creates it, and not if that is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::reveal")]
    #[schema(value_type = Option<String>, example = "fk_8Xk2mQ4z…")]
    pub key: Option<Secret<String>>,
}

/// The keys of a workspace, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// The keys, newest first, including those that have expired.
    pub keys: Vec<KeyDetail>,
}

/// A workspace.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceDetail {
    pub id: WorkspaceId,
    /// The name.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The text of its first key; only in the response that creates it, and not if that is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::reveal")]
    #[schema(value_type = Option<String>, example = "fk_8Xk2mQ4z…")]
    pub key: Option<Secret<String>>,
}

/// The workspaces of the server, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceList {
    /// The workspaces, newest first.
    pub workspaces: Vec<WorkspaceDetail>,
}

impl KeyDetail {
    /// `key`, last used at that time, with its `text` in the response to its creation.
    pub fn new(key: &ApiKey, last_used_at: Option<Timestamp>, text: Option<&KeyText>) -> Self {
        let expires_at = key.end();
        let ApiKey { id, workspace, name, scopes, forms, created_at, .. } = key.clone();
        let scopes = scopes.into_iter().map(OpenEnum::from).collect();
        let key = text.map(revealed);
        Self { id, name, scopes, forms, expires_at, workspace, created_at, last_used_at, key }
    }
}

impl WorkspaceDetail {
    /// `workspace`, with the `text` of its first key in the response to its creation.
    pub fn new(workspace: Workspace, text: Option<&KeyText>) -> Self {
        let Workspace { id, name, created_at } = workspace;
        Self { id, name, created_at, key: text.map(revealed) }
    }
}

/// The text of a key, for the response that shows it.
fn revealed(text: &KeyText) -> Secret<String> {
    Secret::new(text.reveal().to_owned())
}
