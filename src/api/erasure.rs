//! Erasures on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::FoundIn;
use crate::id::SubmissionId;

/// The submissions that were erased, or would be.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Erasure {
    /// The submissions, oldest first.
    pub submissions: Vec<ErasedSubmission>,
    /// Number of deliveries of their events that the server still had.
    pub deliveries: u64,
}

/// A submission that was erased, or would be.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErasedSubmission {
    /// Its id.
    pub id: SubmissionId,
    /// Where it was found: `answers` or metadata outside the trash, `trash`, or `history`, the states that edits replaced.
    #[schema(value_type = Vec<String>)]
    pub found_in: Vec<OpenEnum<FoundIn>>,
}
