//! Submissions on the wire. The answers' own text goes out as it came in.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::id::{FormId, SubmissionId};

/// A submission as creating it answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionBody {
    #[schema(value_type = String, example = "sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
    pub id: SubmissionId,
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub form_id: FormId,
    #[schema(value_type = String, example = "completed")]
    pub status: SubmissionStatus,
    /// The answers exactly as they were sent.
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
    #[schema(value_type = String, format = DateTime)]
    pub submitted_at: Timestamp,
}

/// A submission as it is read: the same, and the version of the form it was checked against.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionDetail {
    #[schema(value_type = String, example = "sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
    pub id: SubmissionId,
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub form_id: FormId,
    #[schema(value_type = String, example = "completed")]
    pub status: SubmissionStatus,
    /// The answers exactly as they were sent.
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
    #[schema(value_type = String, format = DateTime)]
    pub submitted_at: Timestamp,
    pub form_version: u32,
}

/// A page of submissions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionList {
    pub submissions: Vec<SubmissionDetail>,
    /// Where the next page begins; `null` at the end.
    pub next_cursor: Option<String>,
}

/// What a dry run answers: the submission as it would be, without an id and a time.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionTried {
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub form_id: FormId,
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
}

/// The text of an object as raw JSON. It was checked when it came in; what is no JSON is an error here.
fn raw(text: Box<str>) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(text.into_string())
}

impl SubmissionBody {
    /// The answer to having stored `submission`.
    pub fn new(submission: Submission) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id: submission.id,
            form_id: submission.form,
            status: submission.status,
            submitted_at: submission.submitted_at(),
            answers: raw(submission.answers)?,
        })
    }
}

impl SubmissionDetail {
    /// `submission`, whole.
    pub fn new(submission: Submission) -> Result<Self, serde_json::Error> {
        let form_version = submission.form_version;
        let SubmissionBody { id, form_id, status, answers, submitted_at } = SubmissionBody::new(submission)?;
        Ok(Self { id, form_id, status, answers, submitted_at, form_version })
    }
}

impl SubmissionTried {
    /// `answers` that `form` would take.
    pub fn new(form: FormId, answers: Box<str>) -> Result<Self, serde_json::Error> {
        Ok(Self { form_id: form, answers: raw(answers)? })
    }
}
