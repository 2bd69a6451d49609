//! Parameters and results of the operations of a store.

use std::sync::Arc;

use super::{Result, StoreError};
use crate::clock::Timestamp;
use crate::domain::form::admission::Refusal;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::submission::edit::EditedContent;
use crate::domain::submission::{FoundIn, Submission, SubmissionStatus};
use crate::domain::validation::violation::Violation;
use crate::domain::workspace::{ApiKey, Workspace};
use crate::id::{DeliveryId, FormId, FormRef, IntegrationId, SubmissionId, SubmissionRef};
use crate::secret::KeyId;

/// Result of an operation that the domain decides.
#[derive(Debug, Clone)]
pub enum StepResult<T> {
    /// Done, and durable.
    Done(T),
    /// Done by an earlier request with the same idempotency key.
    Replayed(T),
    /// Refused by the domain.
    Refused(Refusal),
    /// The data the caller validated against has changed: validate again.
    Recheck,
    /// The object does not exist, is in another workspace, or, for a submission, in another form.
    Missing,
}

impl<T> StepResult<T> {
    /// Maps the value of `Done` and `Replayed`.
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

/// A form restored from the trash.
#[derive(Debug, Clone)]
pub struct Restored {
    pub form: Arc<Form>,
    /// Its current version.
    pub version: StoredVersion,
    /// Number of submissions at that time.
    pub responses: u64,
    /// When it was restored.
    pub at: Timestamp,
}

/// A page of a list. It may be empty and still have a next page: a search that runs out of time ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, P> {
    pub rows: Vec<T>,
    /// The position after which the next page begins; `None` at the end.
    pub next: Option<P>,
}

/// A page of forms with their numbers of submissions.
pub type FormRows = Page<(Arc<Form>, u64), (Timestamp, FormId)>;

/// A page of submissions.
pub type SubmissionRows = Page<Submission, SubmissionId>;

/// A page of versions; the position is the number of the last one.
pub type VersionRows = Page<StoredVersion, u32>;

/// Identity of a request that may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's API key: idempotency keys are scoped to it.
    pub caller: KeyId,
    pub operation: IdempotentOperation,
    /// Hash of the `Idempotency-Key`.
    pub key: u128,
    /// Hash of the body and the query.
    pub body: u128,
}

/// An operation that supports idempotency keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdempotentOperation {
    CreateForm,
    CreateSubmission(FormId),
    CreateBatch(FormId),
    EraseSubmissions(FormId),
    RestoreForm(FormId),
    RestoreSubmission(FormId, SubmissionId),
    ReleaseSubmission(FormId, SubmissionId),
    CreateKey,
    RotateKey(KeyId),
    CreateWorkspace,
    CreateIntegration(FormId),
    TestIntegration(FormId, IntegrationId),
    RotateSecret(FormId, IntegrationId),
    Redeliver(DeliveryId),
    CancelDelivery(DeliveryId),
    RedeliverAll,
    CancelDeliveries,
}

// Operations whose records hold a form, or an integration of one.
pub(super) const RESTORE_FORM: u8 = 2;
pub(super) const CREATE_INTEGRATION: u8 = 7;
pub(super) const TEST_INTEGRATION: u8 = 8;
pub(super) const ROTATE_SECRET: u8 = 9;

impl IdempotencyKey {
    /// The form that the record of the request holds, or of which it holds an integration: it is erased with the form.
    #[cfg(feature = "postgres")]
    pub(super) fn held_form(self) -> Option<FormId> {
        match self.operation {
            IdempotentOperation::RestoreForm(form)
            | IdempotentOperation::CreateIntegration(form)
            | IdempotentOperation::TestIntegration(form, _)
            | IdempotentOperation::RotateSecret(form, _) => Some(form),
            _ => None,
        }
    }

    /// The binary form, which differs for different requests: the caller, a number for the operation, what it is done to, and
    /// the hash of the key.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let (operation, form, object) = match self.operation {
            IdempotentOperation::CreateForm => (0, [0; 8], Vec::new()),
            IdempotentOperation::CreateSubmission(form) => (1, form.to_bytes(), Vec::new()),
            IdempotentOperation::RestoreForm(form) => (RESTORE_FORM, form.to_bytes(), Vec::new()),
            IdempotentOperation::RestoreSubmission(form, submission) => {
                (3, form.to_bytes(), submission.to_bytes().to_vec())
            }
            IdempotentOperation::CreateKey => (4, [0; 8], Vec::new()),
            IdempotentOperation::RotateKey(key) => (5, key.to_bytes(), Vec::new()),
            IdempotentOperation::CreateWorkspace => (6, [0; 8], Vec::new()),
            IdempotentOperation::CreateIntegration(form) => (CREATE_INTEGRATION, form.to_bytes(), Vec::new()),
            IdempotentOperation::TestIntegration(form, integration) => {
                (TEST_INTEGRATION, form.to_bytes(), integration.to_bytes().to_vec())
            }
            IdempotentOperation::RotateSecret(form, integration) => {
                (ROTATE_SECRET, form.to_bytes(), integration.to_bytes().to_vec())
            }
            IdempotentOperation::Redeliver(delivery) => (10, [0; 8], delivery.to_bytes().to_vec()),
            IdempotentOperation::CancelDelivery(delivery) => (11, [0; 8], delivery.to_bytes().to_vec()),
            IdempotentOperation::RedeliverAll => (12, [0; 8], Vec::new()),
            IdempotentOperation::CancelDeliveries => (13, [0; 8], Vec::new()),
            IdempotentOperation::CreateBatch(form) => (14, form.to_bytes(), Vec::new()),
            IdempotentOperation::ReleaseSubmission(form, submission) => {
                (16, form.to_bytes(), submission.to_bytes().to_vec())
            }
            IdempotentOperation::EraseSubmissions(form) => (15, form.to_bytes(), Vec::new()),
        };
        [&self.caller.to_bytes()[..], &[operation], &form, &object, &self.key.to_be_bytes()].concat()
    }
}

/// Parameters of [`Forms::insert_form`](super::Forms::insert_form).
#[derive(Debug, Clone)]
pub struct NewForm {
    pub form: Form,
    /// Its first version.
    pub version: StoredVersion,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Parameters of [`Keys::insert_key`](super::Keys::insert_key).
#[derive(Debug, Clone)]
pub struct NewKey {
    pub key: ApiKey,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Parameters of [`Keys::insert_workspace`](super::Keys::insert_workspace).
#[derive(Debug, Clone)]
pub struct NewWorkspace {
    pub workspace: Workspace,
    /// Its first key.
    pub key: ApiKey,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A computed update of a form.
#[derive(Debug, Clone)]
pub struct FormUpdate {
    /// The revision the update was computed from.
    pub seen_revision: u64,
    pub now: Timestamp,
    pub form: Form,
    /// The new version, if the questions changed.
    pub version: Option<StoredVersion>,
    /// Ids of all questions removed so far; `None` if this update removes none.
    pub retired: Option<RetiredIds>,
    /// Integrations whose pause by the server ends, and whose deliveries are made pending again that died since they fail.
    pub resumed: Vec<IntegrationId>,
    /// Recorded in the same write as by [`put_response`](super::Idempotency::put_response), if the request has an idempotency key.
    pub response: Option<(IdempotencyKey, String)>,
}

/// Validated answers to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewSubmission<'a> {
    pub form: FormRef,
    /// The revision and version of the form that they were validated against.
    pub checked_revision: u64,
    pub checked_version: u32,
    /// A JSON object, byte for byte as received.
    pub answers: &'a str,
    /// A JSON object as received, if any.
    pub metadata: Option<&'a str>,
    /// A quarantined one is neither counted nor listed.
    pub status: SubmissionStatus,
    /// Whether the form's integrations are notified; not of a quarantined one.
    pub notify: bool,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Validated answers of a batch, to be stored together.
pub struct NewBatch {
    pub form: FormRef,
    /// The revision and version of the form that they were validated against.
    pub checked_revision: u64,
    pub checked_version: u32,
    /// The answers and the metadata of each submission, JSON objects as received.
    pub rows: Vec<(Box<str>, Option<Box<str>>)>,
    /// Whether the form's integrations are notified.
    pub notify: bool,
    pub idempotency_key: Option<IdempotencyKey>,
    /// Makes the response, which is recorded for replays.
    pub respond: BatchResponse,
}

/// Makes the response to a batch from the ids of its submissions; `None` where the form had no place left.
pub type BatchResponse = Box<dyn Fn(&[Option<SubmissionId>]) -> String + Send + Sync>;

/// The submissions of a form that a search has found; violations if it does not suit the form's questions.
pub type Traces = Result<Vec<(SubmissionId, FoundIn)>, Vec<Violation>>;

/// A validated edit of a submission.
#[derive(Debug, Clone)]
pub struct CheckedEdit {
    pub submission: SubmissionRef,
    /// Number of edits of the submission when this one was validated.
    pub seen_edits: u32,
    pub edit: EditedContent,
}

/// Outcome of a step within its transaction.
pub(super) type Step<T> = Result<T, Stop<T>>;

/// Why a step ends early.
pub(super) enum Stop<T> {
    Replayed(Box<T>),
    Refused(Refusal),
    Recheck,
    Missing,
    Failed(StoreError),
}

impl<T> From<StoreError> for Stop<T> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl<T> From<Refusal> for Stop<T> {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

pub(super) fn step_result<T>(step: Step<T>) -> Result<StepResult<T>> {
    Ok(match step {
        Ok(value) => StepResult::Done(value),
        Err(Stop::Replayed(value)) => StepResult::Replayed(*value),
        Err(Stop::Refused(why)) => StepResult::Refused(why),
        Err(Stop::Recheck) => StepResult::Recheck,
        Err(Stop::Missing) => StepResult::Missing,
        Err(Stop::Failed(error)) => return Err(error),
    })
}
