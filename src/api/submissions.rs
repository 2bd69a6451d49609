//! Submissions on the wire. The answers' own text goes out as it came in.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::{Replaced, Sent, Submission, SubmissionStatus};
use crate::id::{FormId, SubmissionId};

/// A submission as creating it answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionBody {
    #[schema(value_type = String, example = "sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
    pub id: SubmissionId,
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub form_id: FormId,
    #[schema(value_type = String, example = "completed")]
    pub status: OpenEnum<SubmissionStatus>,
    /// The answers exactly as they were sent.
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
    #[schema(value_type = String, format = DateTime)]
    pub submitted_at: Timestamp,
    /// Exactly as it was sent, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Box<RawValue>>,
}

/// A submission as it is read: the same, and the version of the form it was checked against.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubmissionDetail {
    #[schema(value_type = String, example = "sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
    pub id: SubmissionId,
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub form_id: FormId,
    #[schema(value_type = String, example = "completed")]
    pub status: OpenEnum<SubmissionStatus>,
    /// The answers exactly as they were sent.
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
    #[schema(value_type = String, format = DateTime)]
    pub submitted_at: Timestamp,
    pub form_version: u32,
    /// What its sender keeps beside the answers, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Box<RawValue>>,
    /// When it was edited last, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub updated_at: Option<Timestamp>,
    /// When it went to the trash, of one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
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
    /// Exactly as it was sent, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Box<RawValue>>,
}

/// What a submission held before an edit.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplacedView {
    #[schema(value_type = Object)]
    pub answers: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Box<RawValue>>,
    #[schema(value_type = String, format = DateTime)]
    pub replaced_at: Timestamp,
}

/// A page of what edits have replaced, newest first. Where the next begins stands in the header `Link`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HistoryList {
    pub history: Vec<ReplacedView>,
}

// The server writes these by hand: the answers' text was checked when it came in, a serializer would parse it anew to
// believe it, and nothing else in them needs escaping.

/// Bytes that the other members take at most.
const ROOM: usize = 256;

impl SubmissionBody {
    /// The JSON of what storing `submission` answers.
    pub fn json(submission: &Submission) -> String {
        let mut text = String::with_capacity(submission.size() + ROOM);
        push_members(&mut text, submission);
        push_json(&mut text, "metadata", submission.metadata.as_deref());
        text.push('}');
        text
    }
}

impl SubmissionDetail {
    /// The JSON of `submission`, whole.
    pub fn json(submission: &Submission) -> String {
        let mut text = String::with_capacity(submission.size() + ROOM);
        push_detail(&mut text, submission);
        text
    }
}

impl SubmissionList {
    /// The JSON of a page.
    pub fn json(submissions: &[Submission], next_cursor: Option<&str>, total: Option<u64>) -> String {
        let room: usize = submissions.iter().map(|submission| submission.size() + ROOM).sum();
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
    /// The JSON of what a dry run answers: that `form` would take what was `sent`.
    pub fn json(form: FormId, sent: &Sent) -> String {
        let mut text = format!(r#"{{"form_id":"{form}","answers":{}"#, sent.answers.text());
        push_json(&mut text, "metadata", sent.metadata.as_deref());
        text.push('}');
        text
    }
}

impl HistoryList {
    /// The JSON of a page.
    pub fn json(history: &[Replaced]) -> String {
        let mut text = r#"{"history":["#.to_owned();
        for (place, replaced) in history.iter().enumerate() {
            let Replaced { answers, metadata, replaced_at, .. } = replaced;
            text.push_str(if place > 0 { "," } else { "" });
            push(&mut text, format_args!(r#"{{"answers":{answers}"#));
            push_json(&mut text, "metadata", metadata.as_deref());
            push(&mut text, format_args!(r#","replaced_at":"{replaced_at}"}}"#));
        }
        text.push_str("]}");
        text
    }
}

fn push_detail(text: &mut String, submission: &Submission) {
    push_members(text, submission);
    push(text, format_args!(r#","form_version":{}"#, submission.form_version));
    push_json(text, "metadata", submission.metadata.as_deref());
    push_moment(text, "updated_at", submission.edited.map(|edited| edited.at));
    push_moment(text, "deleted_at", submission.deleted_at);
    text.push('}');
}

/// Writes what every submission shows, without the closing brace.
fn push_members(text: &mut String, submission: &Submission) {
    let Submission { id, form, answers, .. } = submission;
    let (status, submitted_at) = (submission.status.name(), submission.submitted_at());
    push(text, format_args!(r#"{{"id":"{id}","form_id":"{form}","status":"{status}","answers":"#));
    text.push_str(answers);
    push(text, format_args!(r#","submitted_at":"{submitted_at}""#));
}

/// Writes the member `name`, whose value is JSON, if there is any.
fn push_json(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        push(text, format_args!(r#","{name}":{value}"#));
    }
}

/// Writes the member `name`, if there is any.
fn push_moment(text: &mut String, name: &str, moment: Option<Timestamp>) {
    if let Some(moment) = moment {
        push(text, format_args!(r#","{name}":"{moment}""#));
    }
}

fn push(text: &mut String, more: fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to text cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::limits::Limits;
    use crate::domain::submission::{self, Edited};

    fn again<T: Serialize + serde::de::DeserializeOwned>(text: &str) {
        let read: T = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn what_is_written_is_what_is_declared() {
        let plain = Submission {
            id: SubmissionId::from_bytes([7; 16]),
            form: FormId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7]),
            form_version: 3,
            status: SubmissionStatus::Completed,
            answers: r#"{ "q1": 1.50 }"#.into(),
            metadata: None,
            edited: None,
            deleted_at: None,
        };
        let full = Submission {
            metadata: Some(r#"{ "source": "web" }"#.into()),
            edited: Some(Edited { at: Timestamp::from_millis(5), count: 1 }),
            deleted_at: Some(Timestamp::from_millis(6)),
            ..plain.clone()
        };
        for submission in [&plain, &full] {
            again::<SubmissionBody>(&SubmissionBody::json(submission));
            again::<SubmissionDetail>(&SubmissionDetail::json(submission));
        }
        let two = vec![plain.clone(), full.clone()];
        for (submissions, cursor, total) in [(vec![], None, None), (two, Some("c"), Some(7))] {
            again::<SubmissionList>(&SubmissionList::json(&submissions, cursor, total));
        }
        for body in [r#"{"answers":{"q1" : 1.0}}"#, r#"{"answers":{},"metadata":{ "a":"b"}}"#] {
            let sent = submission::read(body, &Limits::default()).unwrap();
            again::<SubmissionTried>(&SubmissionTried::json(plain.form, &sent));
        }
        let replaced = [plain, full].map(|submission| Replaced {
            number: 0,
            answers: submission.answers,
            metadata: submission.metadata,
            replaced_at: Timestamp::from_millis(7),
        });
        for count in 0..=2 {
            again::<HistoryList>(&HistoryList::json(&replaced[..count]));
        }
    }
}
