//! What happens to forms and submissions, as reported to integrations.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::open_enum::named_enum;
use crate::domain::submission::Submission;
use crate::id::{EventId, FormId, IntegrationId, SubmissionId};

named_enum! {
    #[derive(Default)]
    EventType {
        #[default]
        SubmissionCompleted = "submission.completed",
        SubmissionUpdated = "submission.updated",
        SubmissionDeleted = "submission.deleted",
        FormPublished = "form.published",
        FormUnpublished = "form.unpublished",
        FormDeleted = "form.deleted",
        IntegrationDisabled = "integration.disabled",
        /// Sent on request only; integrations cannot subscribe to it.
        IntegrationTest = "integration.test",
    }
}

impl EventType {
    /// The events that integrations can subscribe to.
    pub const SUBSCRIBABLE: [Self; 7] = [
        Self::SubmissionCompleted,
        Self::SubmissionUpdated,
        Self::SubmissionDeleted,
        Self::FormPublished,
        Self::FormUnpublished,
        Self::FormDeleted,
        Self::IntegrationDisabled,
    ];

    /// Whether the event reports answers, which a condition can test.
    pub fn has_answers(self) -> bool {
        matches!(self, Self::SubmissionCompleted | Self::SubmissionUpdated)
    }

    /// Whether the event is delivered although its form or submission is in the trash.
    pub fn is_deletion(self) -> bool {
        matches!(self, Self::SubmissionDeleted | Self::FormDeleted)
    }
}

/// One thing that happened, with a snapshot of its subject at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    #[serde(rename = "type")]
    pub event_type: EventType,
    pub at: Timestamp,
    /// Number of the event in its form: 1, 2, 3, in the order of commits; 0 for a test.
    pub sequence: u64,
    pub form: FormId,
    pub subject: Subject,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The form alone.
    Form,
    /// A submission with its answers.
    Submission(Box<Submission>),
    /// A submission that was deleted: its answers are not reported.
    DeletedSubmission(SubmissionId),
    /// An integration that the server has paused, and why.
    Integration { id: IntegrationId, name: String, reason: String },
}

impl Event {
    /// The event that `submission` was completed, the one with the number `sequence` of its form.
    pub fn of_completed(submission: Submission, sequence: u64) -> Self {
        Self {
            id: EventId::of_completed(submission.id),
            event_type: EventType::SubmissionCompleted,
            at: submission.submitted_at(),
            sequence,
            form: submission.form,
            subject: Subject::Submission(Box::new(submission)),
        }
    }

    /// The submission that the event is about.
    pub fn submission(&self) -> Option<SubmissionId> {
        match &self.subject {
            Subject::Submission(submission) => Some(submission.id),
            Subject::DeletedSubmission(id) => Some(*id),
            Subject::Form | Subject::Integration { .. } => None,
        }
    }
}
