//! The JSON that webhooks send.

use std::collections::HashMap;

use crate::domain::form::Version;
use crate::domain::integration::FieldSelection;
use crate::domain::integration::event::{Event, EventType, Subject};
use crate::domain::integration::kind::Rendering;
use crate::domain::json::{parse_object, to_text};
use crate::domain::submission::json::{push, push_submission};
use crate::domain::submission::{Answers, Submission};

/// Maximum bytes of a body; a larger one is replaced by a thin one.
const MAX_BODY: usize = 256 * 1024;

const FORMAT: u32 = 1;

/// Bytes of the members beside a submission.
const OVERHEAD: usize = 1_024;

/// Renders the body for an event, with ids only if it `is_thin`.
pub(super) fn render_body(rendering: Rendering<'_>, is_thin: bool) -> Vec<u8> {
    let event = rendering.event;
    if !is_thin {
        let body = render(event, false, &full_data(rendering));
        if body.len() <= MAX_BODY {
            return body.into_bytes();
        }
    }
    render(event, !is_thin, &thin_data(event)).into_bytes()
}

fn render(event: &Event, is_truncated: bool, data: &str) -> String {
    let Event { id, event_type, at, sequence, .. } = event;
    let is_test = *event_type == EventType::IntegrationTest;
    format!(
        r#"{{"type":"{event_type}","timestamp":"{at}","version":{FORMAT},"id":"{id}","sequence":{sequence},"test":{is_test},"truncated":{is_truncated},"data":{{{data}}}}}"#
    )
}

fn full_data(rendering: Rendering<'_>) -> String {
    let Rendering { event, form, version, selection } = rendering;
    let mut text = format!(r#""form":{{"id":"{}","title":{}}}"#, form.id, to_text(&form.title));
    match &event.subject {
        Subject::Form => {}
        Subject::Submission(submission) => push_answers(&mut text, submission, version, selection),
        Subject::DeletedSubmission(id) => {
            push(&mut text, format_args!(r#","submission":{{"id":"{id}","form_id":"{}"}}"#, form.id));
        }
        Subject::Integration { id, name, reason } => {
            let (name, reason) = (to_text(name), to_text(reason));
            push(
                &mut text,
                format_args!(r#","integration":{{"id":"{id}","name":{name},"reason":{reason}}}"#),
            );
        }
    }
    text
}

/// Ids only.
fn thin_data(event: &Event) -> String {
    let mut text = format!(r#""form":{{"id":"{}"}}"#, event.form);
    match (&event.subject, event.submission()) {
        (Subject::Integration { id, .. }, _) => {
            push(&mut text, format_args!(r#","integration":{{"id":"{id}"}}"#))
        }
        (_, Some(id)) => push(&mut text, format_args!(r#","submission":{{"id":"{id}"}}"#)),
        (_, None) => {}
    }
    text
}

/// Writes the submission, as the API shows it, and its answers with the titles of their questions.
fn push_answers(
    text: &mut String,
    submission: &Submission,
    version: Option<&Version>,
    selection: Option<&FieldSelection>,
) {
    let selected = selected(submission, selection);
    text.reserve(2 * selected.size() + OVERHEAD);
    text.push_str(r#","submission":"#);
    push_submission(text, &selected);
    text.push_str(r#","fields":["#);
    let members = parse_object(&selected.answers).unwrap_or_default();
    let values: HashMap<_, _> =
        members.iter().map(|(key, _, range)| (key.as_str(), &selected.answers[range.clone()])).collect();
    let mut separator = "";
    for question in version.map_or(&[][..], |version| &version.questions) {
        let answer = question.id.as_deref().and_then(|id| Some((id, values.get(id)?)));
        let Some((id, value)) = answer else { continue };
        let (kind, title) = (question.kind.name(), to_text(&question.title));
        push(
            text,
            format_args!(
                r#"{separator}{{"question":"{id}","type":"{kind}","title":{title},"value":{value}}}"#
            ),
        );
        separator = ",";
    }
    text.push(']');
}

/// Returns the submission with the answers that `selection` lets through, each as it was sent.
fn selected(submission: &Submission, selection: Option<&FieldSelection>) -> Submission {
    let answers = selection.and_then(|selection| {
        let (answers, _) = Answers::read(&submission.answers).ok()?.retain(|id| selection.includes(id));
        Some(answers.into_text())
    });
    Submission { answers: answers.unwrap_or_else(|| submission.answers.clone()), ..submission.clone() }
}
