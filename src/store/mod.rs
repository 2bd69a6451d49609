//! Where state lives: one trait, [`Store`], and the stores that keep its promises.
//!
//! A method is one whole business step: it loads what a decision needs, asks the domain, and writes what the domain
//! says, all or nothing, one after the other. A store has no `if` about forms. What is answered is durable.
//! Absence is a value, refusal is a value; only failure is an error. `tests/it/store` holds every store to this.

mod error;
pub mod sled;
mod step;

pub use self::sled::engine::disk::holds_store;
pub use self::sled::engine::lock::is_held_by_ended_process;
pub use self::sled::engine::options::OpenError;
pub use error::StoreError;
pub use step::{
    CheckedEdit, FormRows, FormUpdate, IdempotencyKey, IdempotentOperation, NewForm, NewSubmission, Page,
    Restored, StepResult, SubmissionRows,
};

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::domain::form::admission::IdempotencyRecord;
use crate::domain::form::filter::FormFilter;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::domain::submission::{ReplacedState, Submission};
use crate::domain::trash::ClockRecord;
use crate::domain::workspace::{ApiKey, Workspace};
use crate::id::{FormId, SubmissionId, WorkspaceId};
use crate::secret::KeyId;

/// Whether the store serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Ready,
    /// Its index is being built anew from the journal: `done` of `total` bytes are read.
    Rebuilding {
        done: u64,
        total: u64,
    },
    /// Reads are served; writes wait for room on the disk.
    Full,
    /// It has stopped, for this reason.
    Stopped(String),
}

/// Forms of a workspace.
#[async_trait]
pub trait Forms: Send + Sync {
    /// Stores a draft in its workspace. Done and replayed alike give its id and the moment it was made.
    async fn insert_form(&self, new: NewForm) -> Result<StepResult<(FormId, Timestamp)>, StoreError>;

    /// The form, unless it is in the trash.
    async fn find_form(&self, workspace: WorkspaceId, form: FormId) -> Result<Option<Arc<Form>>, StoreError>;

    /// The form outside the trash that has the slug.
    async fn find_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<FormId>, StoreError>;

    /// Forms that `filter` takes with their numbers of submissions, newest first (by the time of deletion those in the
    /// trash), from the first one older than `after` on; `limit` at most, and fewer where the search has used up its
    /// time.
    async fn list_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<FormRows, StoreError>;

    /// How many forms `filter` takes; `None` if counting them took longer than a search may.
    async fn count_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
    ) -> Result<Option<u64>, StoreError>;

    /// One version of a form outside the trash.
    async fn find_version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Option<StoredVersion>, StoreError>;

    /// The ids of questions that were removed from a form outside the trash.
    async fn find_retired(&self, workspace: WorkspaceId, form: FormId) -> Result<RetiredIds, StoreError>;

    /// A page of versions, newest first, from the first one below `before` on: `limit` at most, at least one if there
    /// is any, and fewer where they are large. `None` if there is no such form outside the trash.
    async fn list_versions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<StoredVersion>>, StoreError>;

    /// Replaces a form outside the trash, unless it has changed since the update was computed.
    async fn replace_form(
        &self,
        workspace: WorkspaceId,
        update: FormUpdate,
    ) -> Result<StepResult<()>, StoreError>;

    /// Moves a form at the revision expected, and its submissions, to the trash.
    async fn trash_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>, StoreError>;

    /// Takes the form and its submissions out of the trash again. A replay gives what was given then.
    async fn restore_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Restored>, StoreError>;

    /// Erases a form at the revision expected, in the trash or not: at once for whoever looks, then its submissions
    /// bit by bit, also across a restart.
    async fn purge_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        expected: ExpectedRevision,
    ) -> Result<StepResult<()>, StoreError>;
}

/// Submissions of a form.
#[async_trait]
pub trait Submissions: Send + Sync {
    /// What an earlier request with this idempotency key did, also if that has expired.
    async fn find_idempotency_record(
        &self,
        idempotency_key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Stores a submission if [`admit`](crate::domain::form::admission::admit) lets it in.
    async fn accept_submission(
        &self,
        workspace: WorkspaceId,
        new: NewSubmission<'_>,
        now: Timestamp,
    ) -> Result<StepResult<SubmissionId>, StoreError>;

    /// How many live submissions the form has, which may be in the trash itself; 0 where there is no such form.
    async fn count_submissions(&self, workspace: WorkspaceId, form: FormId) -> Result<u64, StoreError>;

    /// One submission of a form outside the trash.
    async fn find_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
    ) -> Result<Option<Submission>, StoreError>;

    /// A submission as its create request stored it, before any edit, in the trash or not.
    async fn find_original(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
    ) -> Result<Option<Submission>, StoreError>;

    /// A page of the submissions that `filter` takes, from the first one behind `after` on: `limit` at most, and fewer
    /// where they are large or the search has used up its time. `None` if there is no such form outside the trash.
    ///
    /// However many must be looked at, others are not held up, and dropping the future ends it.
    async fn list_submissions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>, StoreError>;

    /// How many submissions of the form `filter` takes, under the same promise; `None` if counting them took longer
    /// than a search may, 0 where there is no such form.
    async fn count_filtered(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        filter: &SubmissionFilter,
    ) -> Result<Option<u64>, StoreError>;

    /// The same, of those in the trash of a form that is not in it itself.
    async fn list_trashed_submissions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>, StoreError>;

    /// A page of what edits have replaced in a submission outside the trash, newest first, from the first one below
    /// `before` on: `limit` at most, at least one if there is any, and fewer where they are large. `None` if there is no
    /// such submission.
    async fn list_history(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<ReplacedState>>, StoreError>;

    /// Makes an edit and keeps what it replaces, if the submission has not been edited since.
    async fn edit_submission(
        &self,
        workspace: WorkspaceId,
        checked: CheckedEdit,
        now: Timestamp,
    ) -> Result<StepResult<Submission>, StoreError>;

    /// Moves a submission at the revision expected to the trash, which frees its seat.
    async fn trash_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>, StoreError>;

    /// Takes a submission out of the trash again, if there is a seat for it. A replay gives the submission as it was
    /// then.
    async fn restore_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Submission>, StoreError>;

    /// Erases a submission at the revision expected, in the trash or not; then bit by bit, also across a restart, what
    /// its edits replaced.
    async fn purge_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        expected: ExpectedRevision,
    ) -> Result<StepResult<()>, StoreError>;
}

/// Items of a page where no number is asked for.
pub const DEFAULT_PAGE: usize = 100;

/// Bytes after which a page ends: a thousand of the largest submissions would be a gigabyte.
pub const PAGE_BYTES: usize = 1 << 20;

/// Bytes of an item on the wire besides its texts, at most.
pub const ITEM_OVERHEAD: usize = 320;

/// Workspaces and the keys that open them.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Puts the first workspace and its first key into an empty store. False, and nothing done, if there is a
    /// workspace already.
    async fn bootstrap(&self, workspace: Workspace, key: ApiKey) -> Result<bool, StoreError>;

    /// Adds a workspace.
    async fn insert_workspace(&self, workspace: Workspace) -> Result<(), StoreError>;

    /// Adds a key.
    async fn insert_key(&self, key: ApiKey) -> Result<(), StoreError>;

    /// The key, expired or not.
    async fn find_key(&self, id: KeyId) -> Result<Option<Arc<ApiKey>>, StoreError>;

    /// All workspaces.
    async fn list_workspaces(&self) -> Result<Vec<Workspace>, StoreError>;

    /// The workspace.
    async fn find_workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;
}

/// What concerns the store as a whole.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Whether the store serves; never blocks.
    fn health(&self) -> Health;

    /// 32 secret bytes, the same for the life of the store: cursors are signed with them.
    async fn signing_key(&self) -> Result<[u8; 32], StoreError>;

    /// Returns what maintenance noted of the clock; `None` before the first time.
    async fn clock_record(&self) -> Result<Option<ClockRecord>, StoreError>;

    /// Notes it for the next time.
    async fn put_clock_record(&self, record: ClockRecord) -> Result<(), StoreError>;

    /// Erases the forms and the submissions that went to the trash before `cutoff`: how many.
    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize, StoreError>;

    /// Begins to erase the records of idempotency keys that have expired at `now`, in the background.
    fn erase_expired_keys(&self, now: Timestamp);

    /// Tells others who find the store locked where its server listens.
    fn announce(&self, address: &str);

    /// Stops: what was begun is finished, what was answered stays.
    async fn close(&self) -> Result<(), StoreError>;
}

/// A store: one object that does it all.
pub trait Store: Forms + Submissions + Keys + Maintenance {}

impl<T: Forms + Submissions + Keys + Maintenance> Store for T {}
