//! What a step of the store is given, and what comes of it.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::domain::form::admission::Refusal;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::submission::Submission;
use crate::domain::submission::edit::EditedContent;
use crate::id::{FormId, SubmissionId};
use crate::secret::KeyId;

/// What became of a step that the domain decided about.
#[derive(Debug, Clone)]
pub enum StepResult<T> {
    /// Done, and durable.
    Done(T),
    /// Done by an earlier request with the same idempotency key.
    Replayed(T),
    /// The domain said no.
    Refused(Refusal),
    /// What was checked beforehand has changed since: check again.
    Recheck,
    /// There is no such form in this workspace, or no such submission in the form.
    Missing,
}

impl<T> StepResult<T> {
    /// The same step with `change` of what it gives.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> StepResult<U> {
        match self {
            Self::Done(value) => StepResult::Done(change(value)),
            Self::Replayed(value) => StepResult::Replayed(change(value)),
            Self::Refused(why) => StepResult::Refused(why),
            Self::Recheck => StepResult::Recheck,
            Self::Missing => StepResult::Missing,
        }
    }
}

/// A form that was taken out of the trash.
#[derive(Debug, Clone)]
pub struct Restored {
    pub form: Arc<Form>,
    /// Its questions.
    pub version: StoredVersion,
    /// How many submissions it had then.
    pub responses: u64,
    /// When that was.
    pub at: Timestamp,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Whether more come after it.
    pub more: bool,
}

/// Part of a list of forms, with their numbers of submissions.
#[derive(Debug, Clone)]
pub struct FormRows {
    pub rows: Vec<(Arc<Form>, u64)>,
    /// Where to go on if the search has used up its time before it found so many or came to the end.
    pub stopped_at: Option<(Timestamp, FormId)>,
}

/// A page of submissions. It may be empty and yet have a next page: a search ends when its time is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionRows {
    pub rows: Vec<Submission>,
    /// The submission behind which the next page begins; `None` at the end.
    pub next: Option<SubmissionId>,
}

/// A request that may come again: what it is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key that sent it: another caller's idempotency keys are others.
    pub caller: KeyId,
    /// What it asks for.
    pub operation: IdempotentOperation,
    /// Hash of the `Idempotency-Key`.
    pub key: u128,
    /// Hash of the body and the query.
    pub body: u128,
}

/// An operation that can be remembered by an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdempotentOperation {
    CreateForm,
    CreateSubmission(FormId),
    RestoreForm(FormId),
    RestoreSubmission(FormId, SubmissionId),
}

/// A form that is to be stored.
#[derive(Debug, Clone)]
pub struct NewForm {
    pub form: Form,
    /// Its questions.
    pub version: StoredVersion,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// The result of an edit of a form.
#[derive(Debug, Clone)]
pub struct FormUpdate {
    /// The revision that the edit was computed from.
    pub seen_revision: u64,
    pub form: Form,
    /// The new questions, if they changed.
    pub version: Option<StoredVersion>,
    /// All ids of removed questions, if they are more now.
    pub retired: Option<RetiredIds>,
}

/// Answers that were checked against a form and are to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewSubmission<'a> {
    pub form: FormId,
    /// The form's revision and version they were checked against.
    pub checked_revision: u64,
    pub checked_version: u32,
    /// A JSON object, exactly as it was sent.
    pub answers: &'a str,
    /// The same, if it was.
    pub metadata: Option<&'a str>,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// An edit of a submission that was checked and is to be made.
#[derive(Debug, Clone)]
pub struct CheckedEdit {
    pub form: FormId,
    pub submission: SubmissionId,
    /// How often the submission had been edited when this was checked.
    pub seen_edits: u32,
    pub edit: EditedContent,
}
