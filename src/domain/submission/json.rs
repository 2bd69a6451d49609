//! Submissions as JSON, written by hand: the text of the answers was validated when it came in, a serializer would parse it
//! again, and nothing else needs escaping.

use std::fmt::{self, Write};

use super::{Submission, SubmissionStatus};
use crate::clock::Timestamp;
use crate::id::{FormId, SubmissionId};

/// Writes all members of `submission`, as an object.
pub fn push_submission(text: &mut String, submission: &Submission) {
    push_members(text, submission);
    push(text, format_args!(r#","form_version":{}"#, submission.form_version));
    push_json(text, "metadata", submission.metadata.as_deref());
    push_moment(text, "updated_at", submission.edited.map(|edited| edited.at));
    push_moment(text, "deleted_at", submission.trashed_at());
    text.push('}');
}

/// Writes the members that every submission has, without the closing brace.
pub fn push_members(text: &mut String, submission: &Submission) {
    let Submission { id, form, answers, .. } = submission;
    push_head(text, *id, *form, submission.status, answers, submission.submitted_at());
}

/// Writes the members that every submission has, without the closing brace.
pub fn push_head(
    text: &mut String,
    id: SubmissionId,
    form: FormId,
    status: SubmissionStatus,
    answers: &str,
    submitted_at: Timestamp,
) {
    let status = status.name();
    push(text, format_args!(r#"{{"id":"{id}","form_id":"{form}","status":"{status}","answers":"#));
    text.push_str(answers);
    push(text, format_args!(r#","submitted_at":"{submitted_at}""#));
}

/// Writes the member `name`, whose value is JSON, if there is any.
pub fn push_json(text: &mut String, name: &str, value: Option<&str>) {
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

pub fn push(text: &mut String, more: fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to text cannot fail");
}
