//! Batches of submissions on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema;
use super::{Code, Problem};
use crate::domain::open_enum::OpenEnum;
use crate::domain::validation::violation::Violation;
use crate::id::SubmissionId;

/// The results of a batch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BatchResults {
    /// A result for each submission, in their order.
    pub results: Vec<BatchResult>,
}

/// The result of one submission of a batch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// Its place in the batch, from 0.
    pub index: usize,
    /// The HTTP status that it would have got alone.
    pub status: u16,
    /// Its id, if it was stored; zeros in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SubmissionId>,
    /// Keys of unknown answers, which were dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::ErrorCodeOrOther>)]
    pub code: Option<OpenEnum<Code>>,
    /// An explanation, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The first rules that it breaks, at most 10; pointers lead into the submission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Violation>,
}

/// Maximum errors of one submission: a thousand of them share a response.
const MAX_ERRORS: usize = 10;

impl BatchResult {
    /// The result of a submission that was stored as `id`, or would be, with `status`.
    pub fn accepted(index: usize, status: u16, id: SubmissionId, dropped: Vec<String>) -> Self {
        Self { index, status, id: Some(id), dropped, code: None, detail: None, errors: Vec::new() }
    }

    pub fn refused(index: usize, problem: Problem) -> Self {
        let Problem { status, code, detail, mut errors, .. } = problem;
        errors.truncate(MAX_ERRORS);
        Self { index, status, id: None, dropped: Vec::new(), code: Some(code), detail, errors }
    }
}
