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

/// A request to rotate an API key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RotateKey {
    /// How long the old key stays valid, such as `24h`; `None` to end it at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
}

/// A request for a new workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewWorkspace {
    pub name: String,
}

/// An API key that was created.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyCreated {
    #[schema(schema_with = schema::key_id)]
    pub id: KeyId,
    /// The name.
    pub name: String,
    #[schema(schema_with = schema::scopes)]
    pub scopes: Vec<OpenEnum<Scope>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schema::key_forms)]
    pub forms: Option<Vec<FormId>>,
    /// When it stops being valid; left out if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    #[schema(schema_with = schema::workspace_id)]
    pub workspace: WorkspaceId,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::revealed")]
    #[schema(schema_with = schema::key_text)]
    pub key: Option<Secret<String>>,
}

/// An API key in the list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyDetail {
    #[schema(schema_with = schema::key_id)]
    pub id: KeyId,
    /// The name.
    pub name: String,
    #[schema(schema_with = schema::scopes)]
    pub scopes: Vec<OpenEnum<Scope>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schema::key_forms)]
    pub forms: Option<Vec<FormId>>,
    /// When it stops being valid; left out if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    #[schema(schema_with = schema::workspace_id)]
    pub workspace: WorkspaceId,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last used, to the minute; left out if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
}

/// The keys of a workspace, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// The keys, newest first, including those that have expired.
    pub keys: Vec<KeyDetail>,
}

/// A workspace that was created.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceCreated {
    #[schema(schema_with = schema::workspace_id)]
    pub id: WorkspaceId,
    /// The name.
    pub name: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::revealed")]
    #[schema(schema_with = schema::key_text)]
    pub key: Option<Secret<String>>,
}

/// A workspace in the list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceDetail {
    #[schema(schema_with = schema::workspace_id)]
    pub id: WorkspaceId,
    /// The name.
    pub name: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// The workspaces of the server, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceList {
    /// The workspaces, newest first.
    pub workspaces: Vec<WorkspaceDetail>,
}

impl KeyCreated {
    /// The response to the creation of `key`; a replay is without its `text`.
    pub fn new(key: ApiKey, text: Option<&KeyText>) -> Self {
        let expires_at = key.end();
        let ApiKey { id, workspace, name, scopes, forms, created_at, .. } = key;
        let scopes = scopes.into_iter().map(OpenEnum::from).collect();
        Self { id, name, scopes, forms, expires_at, workspace, created_at, key: text.map(revealed) }
    }
}

impl KeyDetail {
    /// `key`, last used at that time.
    pub fn new(key: &ApiKey, last_used_at: Option<Timestamp>) -> Self {
        let expires_at = key.end();
        let ApiKey { id, workspace, name, scopes, forms, created_at, .. } = key.clone();
        let scopes = scopes.into_iter().map(OpenEnum::from).collect();
        Self { id, name, scopes, forms, expires_at, workspace, created_at, last_used_at }
    }
}

impl WorkspaceCreated {
    /// The response to the creation of `workspace`; a replay is without the `text` of its first key.
    pub fn new(workspace: Workspace, text: Option<&KeyText>) -> Self {
        let Workspace { id, name, created_at } = workspace;
        Self { id, name, created_at, key: text.map(revealed) }
    }
}

impl From<Workspace> for WorkspaceDetail {
    fn from(Workspace { id, name, created_at }: Workspace) -> Self {
        Self { id, name, created_at }
    }
}

/// The text of a key, for the response that shows it.
fn revealed(text: &KeyText) -> Secret<String> {
    Secret::new(text.reveal().to_owned())
}
