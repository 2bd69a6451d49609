//! The event that tests an integration.

use super::event::{Event, EventType, Subject};
use crate::clock::Timestamp;
use crate::domain::form::{Form, Version};
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::id::{EventId, Random, SubmissionId};

impl Event {
    /// A test at `now`: an invented submission to a form with the questions of `version`.
    pub fn test(form: &Form, version: &Version, now: Timestamp, random: &dyn Random) -> Self {
        let submission = Submission {
            id: SubmissionId::first_of(now.millis()),
            form: form.id,
            form_version: version.number,
            status: SubmissionStatus::Completed,
            answers: version.example_answers().to_string().into(),
            metadata: None,
            edited: None,
            deleted_at: None,
        };
        Self {
            id: EventId::draw(now.millis(), random),
            event_type: EventType::IntegrationTest,
            at: now,
            sequence: 0,
            form: form.id,
            subject: Subject::Submission(Box::new(submission)),
        }
    }
}
