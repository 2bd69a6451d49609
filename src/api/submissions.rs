//! Submissions on the wire. The answers' own text goes out as it came in.

use std::fmt::{self, Write};

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

/// A page of submissions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionList {
    pub submissions: Vec<SubmissionDetail>,
    /// Where the next page begins; `null` at the end.
    pub next_cursor: Option<String>,
    /// How many all pages have together, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// What a dry run answers: the submission as it would be, without an id and a time.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionTried {
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub form_id: FormId,
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
}

// The server writes these by hand: the answers' text was checked when it came in, a serializer would parse it anew to
// believe it, and nothing else in them needs escaping.

/// Bytes that the other members take at most.
const ROOM: usize = 256;

impl SubmissionBody {
    /// The JSON of what storing `submission` answers.
    pub fn json(submission: &Submission) -> String {
        let mut text = String::with_capacity(submission.answers.len() + ROOM);
        push_members(&mut text, submission);
        text.push('}');
        text
    }
}

impl SubmissionDetail {
    /// The JSON of `submission`, whole.
    pub fn json(submission: &Submission) -> String {
        let mut text = String::with_capacity(submission.answers.len() + ROOM);
        push_detail(&mut text, submission);
        text
    }
}

impl SubmissionList {
    /// The JSON of a page.
    pub fn json(submissions: &[Submission], next_cursor: Option<&str>, total: Option<u64>) -> String {
        let room: usize = submissions.iter().map(|submission| submission.answers.len() + ROOM).sum();
        let mut text = String::with_capacity(room + ROOM);
        text.push_str(r#"{"submissions":["#);
        for (place, submission) in submissions.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            push_detail(&mut text, submission);
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

impl SubmissionTried {
    /// The JSON of what a dry run answers: that `form` would take `answers`.
    pub fn json(form: FormId, answers: &str) -> String {
        format!(r#"{{"form_id":"{form}","answers":{answers}}}"#)
    }
}

fn push_detail(text: &mut String, submission: &Submission) {
    push_members(text, submission);
    push(text, format_args!(r#","form_version":{}}}"#, submission.form_version));
}

/// Writes what every submission shows, without the closing brace.
fn push_members(text: &mut String, submission: &Submission) {
    let Submission { id, form, answers, .. } = submission;
    let (status, submitted_at) = (submission.status.name(), submission.submitted_at());
    push(text, format_args!(r#"{{"id":"{id}","form_id":"{form}","status":"{status}","answers":"#));
    text.push_str(answers);
    push(text, format_args!(r#","submitted_at":"{submitted_at}""#));
}

fn push(text: &mut String, more: fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to text cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_declared() {
        let submission = Submission {
            id: SubmissionId::from_bytes([7; 16]),
            form: FormId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7]),
            form_version: 3,
            status: SubmissionStatus::Completed,
            answers: r#"{ "q1": 1.50 }"#.into(),
        };
        let again = |text: &str, value: serde_json::Result<String>| assert_eq!(value.unwrap(), text);
        let text = SubmissionBody::json(&submission);
        again(&text, serde_json::to_string(&serde_json::from_str::<SubmissionBody>(&text).unwrap()));
        let text = SubmissionDetail::json(&submission);
        again(&text, serde_json::to_string(&serde_json::from_str::<SubmissionDetail>(&text).unwrap()));
        let text = SubmissionTried::json(submission.form, &submission.answers);
        again(&text, serde_json::to_string(&serde_json::from_str::<SubmissionTried>(&text).unwrap()));
        let two = vec![submission.clone(), submission];
        for (submissions, cursor, total) in [(vec![], None, None), (two, Some("c"), Some(7))] {
            let text = SubmissionList::json(&submissions, cursor, total);
            again(&text, serde_json::to_string(&serde_json::from_str::<SubmissionList>(&text).unwrap()));
        }
    }
}
