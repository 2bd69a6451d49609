//! Submissions on the wire. Answers are returned verbatim.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::schema;
use crate::clock::Timestamp;
use crate::domain::form::FormStatus;
use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::json::{push, push_head, push_json, push_members, push_submission};
use crate::domain::submission::{ReplacedState, Submission, SubmissionStatus, SubmittedAnswers};
use crate::domain::summary::report::Summary;
use crate::id::{FormId, SubmissionId};

/// A submission that was created.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionBody {
    pub id: SubmissionId,
    pub form_id: FormId,
    #[schema(value_type = schema::SubmissionStatusOrOther)]
    pub status: OpenEnum<SubmissionStatus>,
    #[schema(value_type = schema::Answers)]
    pub answers: Box<RawValue>,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Metadata>)]
    pub metadata: Option<Box<RawValue>>,
}

/// A submission.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionDetail {
    pub id: SubmissionId,
    pub form_id: FormId,
    #[schema(value_type = schema::SubmissionStatusOrOther)]
    pub status: OpenEnum<SubmissionStatus>,
    #[schema(value_type = schema::Answers)]
    pub answers: Box<RawValue>,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// The version of the form's questions that the answers were checked against.
    pub form_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Metadata>)]
    pub metadata: Option<Box<RawValue>>,
    /// When it was last edited; left out if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When it was moved to the trash; left out if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// A page of submissions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionList {
    /// The submissions.
    pub submissions: Vec<SubmissionDetail>,
    /// The `cursor` of the next page; `null` on the last.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
    /// The number of submissions on all pages, with `count=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// The state of a submission before an edit.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplacedView {
    #[schema(value_type = schema::Answers)]
    pub answers: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Metadata>)]
    pub metadata: Option<Box<RawValue>>,
    /// When an edit replaced this state.
    pub replaced_at: Timestamp,
}

/// A page of replaced states, newest first. The header `Link` links to the next page.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HistoryList {
    /// The replaced states, newest first.
    pub history: Vec<ReplacedView>,
}

/// The summary of the answers to a form.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormSummary {
    pub form_id: FormId,
    /// The title of the form.
    pub title: String,
    #[schema(value_type = schema::FormStatusOrOther)]
    pub status: OpenEnum<FormStatus>,
    pub generated_at: Timestamp,
    /// The filter: `since`, `until` and `q`, and tests of answers, such as `score.gte` with the value `4`.
    pub filter: BTreeMap<String, String>,
    #[serde(flatten)]
    pub summary: Summary,
}

/// Maximum bytes of the other members.
const MEMBER_OVERHEAD: usize = 256;

impl SubmissionBody {
    /// The JSON of the response to the creation of `submission`.
    pub fn json(submission: &Submission) -> String {
        let mut text = String::with_capacity(submission.size() + MEMBER_OVERHEAD);
        push_members(&mut text, submission);
        push_json(&mut text, "metadata", submission.metadata.as_deref());
        text.push('}');
        text
    }

    /// The JSON of a dry run: the submission to `form` that `sent` would become at the time `now`, with an id of zeros.
    pub fn dry_run_json(form: FormId, sent: &SubmittedAnswers, now: Timestamp) -> String {
        let (answers, mut text) =
            (sent.answers.text(), String::with_capacity(sent.answers.text().len() + MEMBER_OVERHEAD));
        push_head(&mut text, SubmissionId::ZERO, form, SubmissionStatus::Completed, answers, now);
        push_json(&mut text, "metadata", sent.metadata.as_deref());
        text.push('}');
        text
    }
}

impl SubmissionDetail {
    /// The full JSON of `submission`.
    pub fn json(submission: &Submission) -> String {
        let mut text = String::with_capacity(submission.size() + MEMBER_OVERHEAD);
        push_submission(&mut text, submission);
        text
    }
}

impl SubmissionList {
    /// The JSON of a page.
    pub fn json(submissions: &[Submission], next_cursor: Option<&str>, total: Option<u64>) -> String {
        let room: usize = submissions.iter().map(|submission| submission.size() + MEMBER_OVERHEAD).sum();
        let mut text = String::with_capacity(room + MEMBER_OVERHEAD);
        text.push_str(r#"{"submissions":["#);
        for (place, submission) in submissions.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            push_submission(&mut text, submission);
        }
        match next_cursor {
            Some(cursor) => push(&mut text, format_args!(r#"],"next_cursor":"{cursor}""#)),
            None => text.push_str(r#"],"next_cursor":null"#),
        }
        if let Some(total) = total {
            push(&mut text, format_args!(r#","total":{total}"#));
        }
        text.push('}');
        text
    }
}

impl HistoryList {
    /// The JSON of a page.
    pub fn json(history: &[ReplacedState]) -> String {
        let mut text = r#"{"history":["#.to_owned();
        for (place, replaced) in history.iter().enumerate() {
            let ReplacedState { answers, metadata, replaced_at, .. } = replaced;
            text.push_str(if place > 0 { "," } else { "" });
            push(&mut text, format_args!(r#"{{"answers":{answers}"#));
            push_json(&mut text, "metadata", metadata.as_deref());
            push(&mut text, format_args!(r#","replaced_at":"{replaced_at}"}}"#));
        }
        text.push_str("]}");
        text
    }
}
