//! Information about the server and the caller.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema;
use crate::clock::Timestamp;
use crate::domain::open_enum::OpenEnum;
use crate::domain::workspace::Scope;
use crate::id::{FormId, WorkspaceId};
use crate::secret::KeyId;

/// The workspace and the key of the caller.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// The workspace of the key.
    pub workspace: WorkspaceView,
    /// The key that was sent.
    pub key: KeyView,
}

/// A workspace.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceView {
    /// The id.
    pub id: WorkspaceId,
    /// The name.
    pub name: String,
}

/// An API key, by its public part.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    /// The id.
    pub id: KeyId,
    /// The name.
    pub name: String,
    /// The scopes of the key.
    #[schema(value_type = Vec<schema::ScopeOrOther>)]
    pub scopes: Vec<OpenEnum<Scope>>,
    /// The only forms that the key may be used for; left out if it may be used for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<Vec<FormId>>,
    /// When it stops being valid; left out if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The store: its sizes in bytes, and what it is doing. Times of what was done are since it was opened.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StoreView {
    /// Version of the server.
    pub version: String,
    /// When the store was opened.
    pub opened_at: Timestamp,
    /// Submissions of all forms, except those in the trash.
    pub submissions: u64,
    /// Bytes of the journal, which has the data; of the tables, if the store is a database.
    pub journal_bytes: u64,
    /// Bytes of the index, which is built from it; of the indexes of a database.
    pub index_bytes: u64,
    /// Bytes free on its disk; left out if the store is a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Whether the journal is being compacted, or will be soon.
    pub compacting: bool,
    /// When the last compaction ended; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_at: Option<Timestamp>,
    /// When a compaction removes what was erased, at the latest; left out if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erasure_due_at: Option<Timestamp>,
    /// Whether the store is being verified.
    pub verifying: bool,
    /// When the last verification ended; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Timestamp>,
    /// The result of the last verification; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationView>,
}

/// The result of a verification.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VerificationView {
    /// Files of the journal; 0 if the store is a database.
    pub files: u64,
    /// Intact writes.
    pub writes: u64,
    /// Rows that compactions have left of the writes before; rows of a database.
    pub rows: u64,
    /// Damage, in the order of the files.
    pub damage: Vec<DamageView>,
}

/// Damage of a file of the store.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DamageView {
    /// The file, in the data directory; a table, if the store is a database.
    pub file: String,
    /// Place in bytes.
    pub offset: u64,
    /// Bytes that cannot be read there; 0 if their number is not known.
    pub bytes: u64,
    /// A description of the damage, with the writes that it affects.
    pub what: String,
}

/// The server's limits: sizes in bytes, times in seconds, rates as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsView {
    /// Bytes of a body, other than a form's definition.
    pub max_body: u64,
    /// Bytes of a form's definition.
    pub max_definition: u64,
    /// Bytes of a batch of submissions.
    pub max_batch: u64,
    /// Questions of a form.
    pub max_questions: u64,
    /// Options of a question, and rows and columns of a matrix.
    pub max_options: u64,
    /// Maximum characters of a title.
    pub max_title: u64,
    /// Maximum bytes of one answer.
    pub max_answer: u64,
    /// Maximum answers of a submission.
    pub max_answers: u64,
    /// Maximum bytes of a request's address.
    pub max_uri: u64,
    /// Maximum bytes of a request's line and headers.
    pub max_head: u64,
    /// Maximum headers of a request.
    pub max_headers: u64,
    /// Maximum seconds to send a request's line and headers.
    pub head_timeout: f64,
    /// Maximum seconds until the first byte of a body.
    pub first_byte_timeout: f64,
    /// Maximum seconds to send a body.
    pub body_timeout: f64,
    /// Minimum rate of a body, in bytes per second.
    pub min_body_rate: u64,
    /// Seconds after which an idle connection is closed.
    pub idle_timeout: f64,
    /// Maximum simultaneous connections.
    pub max_connections: u64,
    /// Maximum simultaneous connections from one address.
    pub max_connections_per_address: u64,
    /// Maximum failed authentications from one address; `null` if unlimited.
    #[schema(required = true, example = "10/min")]
    pub auth_failures: Option<String>,
    /// Maximum requests with one API key; `null` if unlimited.
    #[schema(required = true, example = "50/s")]
    pub rate_limit: Option<String>,
    /// Maximum answers sent to pages of forms from one address; `null` if unlimited.
    #[schema(required = true, example = "30/min")]
    pub page_rate: Option<String>,
}
