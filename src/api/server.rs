//! What the server tells about itself and about the caller.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::open_enum::OpenEnum;
use crate::domain::workspace::Scope;
use crate::id::WorkspaceId;
use crate::secret::KeyId;

/// Who the caller is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    pub workspace: WorkspaceView,
    pub key: KeyView,
}

/// A workspace, by id and name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceView {
    #[schema(value_type = String, example = "ws_3f8k2m9q4x1a")]
    pub id: WorkspaceId,
    pub name: String,
}

/// A key, by its public part.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    #[schema(value_type = String, example = "key_8Xk2mQ4z")]
    pub id: KeyId,
    pub name: String,
    #[schema(value_type = Vec<String>, example = json!(["admin", "operator"]))]
    pub scopes: Vec<OpenEnum<Scope>>,
}

/// The server's limits: sizes in bytes, times in seconds, rates as text; `null` is off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsView {
    pub max_body: u64,
    pub max_definition: u64,
    pub max_questions: u64,
    pub max_options: u64,
    pub max_title: u64,
    pub max_answer: u64,
    pub max_answers: u64,
    pub max_uri: u64,
    pub max_head: u64,
    pub max_headers: u64,
    pub head_timeout: f64,
    pub first_byte_timeout: f64,
    pub body_timeout: f64,
    pub min_body_rate: u64,
    pub idle_timeout: f64,
    pub max_connections: u64,
    pub max_connections_per_address: u64,
    pub auth_failures: Option<String>,
}
