//! Persistence: the trait [`Store`] and its implementations.
//!
//! Each method is one complete, atomic business step: it loads what a decision needs, asks the domain, and writes the
//! result. Steps are serializable. A store holds no business rules. Results are durable before they are returned.
//! Absence and refusal are values; only failures are errors. `tests/it/store` is the conformance suite.

mod copy;
mod deliveries;
mod error;
mod json;
#[cfg(feature = "postgres")]
pub mod postgres;
mod queue;
mod record;
mod search;
pub mod sled;
mod step;
mod version_cache;

pub use self::sled::engine::disk::holds_store;
pub use self::sled::engine::journal_check::{Damage, JournalCheck, check_journal};
pub use self::sled::engine::lock::is_held_by_ended_process;
pub use self::sled::engine::options::OpenError;
pub use self::sled::salvage::{Salvage, SalvageCount, salvage};
pub use copy::{CopiedKind, copy, is_copy_of};
pub use deliveries::{
    AttemptEnd, Capacity, ClaimedBatch, Claims, ConfirmationPermit, Deliveries, DeliveryFilter, DeliveryRows,
    FinishedAttempt, FormDelivery, LoadedDelivery, Owner, QueueId, QueueTotals, Room, StatsByType, TypeStats,
};
pub use error::{Result, StoreError};
pub use record::{KeyedRecord, RecordKey, RecordKind, Records};
pub use step::{
    BatchResponse, CheckedEdit, FormRows, FormUpdate, IdempotencyKey, IdempotentOperation, NewBatch, NewForm,
    NewKey, NewSubmission, NewWorkspace, Page, Restored, StepResult, SubmissionRows, Traces, VersionRows,
};

pub use version_cache::VersionCache;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::domain::form::admission::EarlierRequest;
use crate::domain::form::filter::FormFilter;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{ReplacedState, Submission, SubmissionStatus};
use crate::domain::trash::ClockRecord;
use crate::domain::workspace::{ApiKey, Rotation, Workspace};
use crate::id::{FormId, FormRef, SubmissionId, SubmissionRef, WorkspaceId};
use crate::secret::KeyId;

/// Whether a store serves requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StoreHealth {
    #[default]
    Ready,
    /// The index is being rebuilt from the journal: `done` of `total` bytes are read.
    Rebuilding { done: u64, total: u64 },
    /// Reads are served; writes fail until there is free disk space.
    Full,
    /// The database does not answer, for this reason.
    Away(String),
    /// Stopped, for this reason.
    Stopped(String),
}

/// A file of a store, opened to be copied.
pub struct StoreFile {
    /// Relative to the data directory.
    pub path: String,
    pub bytes: u64,
    pub content: Box<dyn Read + Send>,
}

/// Disk space of a store. In a database, its tables are what the journal is otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreUsage {
    pub journal_bytes: u64,
    pub index_bytes: u64,
    /// Bytes free on its disk; `None` if it is not on a disk of this machine.
    pub free_bytes: Option<u64>,
    /// Whether the journal is being compacted, or will be soon.
    pub is_compacting: bool,
    /// Time since the last compaction ended, if there was one since the store was opened.
    pub compacted_ago: Option<Duration>,
    /// Time until a compaction removes what was erased, if anything was.
    pub erasure_due_in: Option<Duration>,
}

/// Forms of a workspace.
#[async_trait]
pub trait Forms: Send + Sync {
    /// Stores a draft. `Done` and `Replayed` both return its id and creation time.
    async fn insert_form(&self, new: NewForm) -> Result<StepResult<(FormId, Timestamp)>>;

    /// Returns a form that is not in the trash.
    async fn find_form(&self, form: FormRef) -> Result<Option<Arc<Form>>>;

    /// Returns the workspace that the form belongs to, in the trash or not; `None` if the form does not exist.
    async fn find_form_workspace(&self, form: FormId) -> Result<Option<WorkspaceId>>;

    /// Returns the form outside the trash that has the slug.
    async fn find_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<FormId>>;

    /// Lists the forms that match `filter`, with their numbers of submissions, newest first (trashed ones by time of
    /// deletion), starting with the first one older than `after`: at most `limit`, and fewer if they are large or the
    /// search runs out of time.
    async fn list_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<FormRows>;

    /// Counts the forms that match `filter`; `None` if the search runs out of time.
    async fn count_forms(&self, workspace: WorkspaceId, filter: &FormFilter) -> Result<Option<u64>>;

    /// Returns one version of a form outside the trash.
    async fn find_version(&self, form: FormRef, number: u32) -> Result<Option<StoredVersion>>;

    /// Returns the ids of questions removed from a form outside the trash.
    async fn find_retired(&self, form: FormRef) -> Result<RetiredIds>;

    /// Lists versions, newest first, starting with the first one below `before`: at most `limit`, and fewer if they
    /// are large, but at least one if there is any. `None` if the form does not exist outside the trash.
    async fn list_versions(
        &self,
        form: FormRef,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<VersionRows>>;

    /// Replaces a form outside the trash, unless it has changed since the update was computed.
    async fn replace_form(&self, workspace: WorkspaceId, update: FormUpdate) -> Result<StepResult<()>>;

    /// Moves a form at the expected revision, with its submissions, to the trash.
    async fn trash_form(
        &self,
        form: FormRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>>;

    /// Restores a form and its submissions from the trash. A replay returns the original result.
    async fn restore_form(
        &self,
        form: FormRef,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Restored>>;

    /// Erases a form at the expected revision, in the trash or not: invisible at once, then its rows in the
    /// background, continued after a restart.
    async fn purge_form(&self, form: FormRef, expected: ExpectedRevision) -> Result<StepResult<()>>;
}

/// Submissions of a form.
#[async_trait]
pub trait Submissions: Send + Sync {
    /// Stores a submission if [`admit`](crate::domain::form::admission::admit) accepts it.
    async fn accept_submission(
        &self,
        new: NewSubmission<'_>,
        now: Timestamp,
    ) -> Result<StepResult<SubmissionId>>;

    /// Stores the submissions of a batch in one write, as many as the form has places for. `Done` and `Replayed` both return
    /// the response.
    async fn accept_batch(&self, new: NewBatch, now: Timestamp) -> Result<StepResult<String>>;

    /// Counts the completed submissions outside the trash of a form, in the trash or not; 0 if the form does not exist.
    async fn count_submissions(&self, form: FormRef) -> Result<u64>;

    /// Returns one submission of a form, both outside the trash; it may be quarantined.
    async fn find_submission(&self, submission: SubmissionRef) -> Result<Option<Submission>>;

    /// Returns a submission as created, before any edit, in the trash, quarantined or neither.
    async fn find_original(&self, submission: SubmissionRef) -> Result<Option<Submission>>;

    /// Lists the submissions that match `filter`, starting with the first one after `after`: at most `limit`, and
    /// fewer if they are large or the search runs out of time. `None` if the form does not exist outside the trash.
    ///
    /// A long search does not block other calls, and is cancelled by dropping the future.
    async fn list_submissions(
        &self,
        form: FormRef,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>>;

    /// Counts the submissions that match `filter`, without blocking other calls; `None` if the search runs out of
    /// time, 0 if the form does not exist.
    async fn count_filtered(&self, form: FormRef, filter: &SubmissionFilter) -> Result<Option<u64>>;

    /// Lists the submissions in the trash of a form outside the trash, or those in quarantine if that is the `status`, newest first,
    /// starting with the first one below `before`: at most `limit`, and fewer if they are large or the search runs out of time.
    async fn list_trashed_submissions(
        &self,
        form: FormRef,
        status: SubmissionStatus,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>>;

    /// Lists the states that edits have replaced, newest first, starting with the first one below `before`: at most
    /// `limit`, and fewer if they are large, but at least one if there is any. `None` if the submission does not
    /// exist outside the trash.
    async fn list_history(
        &self,
        submission: SubmissionRef,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<ReplacedState, u32>>>;

    /// Finds all submissions of a form, in the trash or not, that match `query` in their answers or metadata: live ones,
    /// trashed and quarantined ones, and states that edits have replaced; more than `limit` ends the search. `None` if the form does not exist.
    async fn find_traces(
        &self,
        form: FormRef,
        query: SubmissionQuery,
        limit: usize,
    ) -> Result<Option<Traces>>;

    /// Applies an edit and keeps the replaced state, unless the submission has been edited since.
    async fn edit_submission(&self, checked: CheckedEdit, now: Timestamp) -> Result<StepResult<Submission>>;

    /// Moves a submission at the expected revision to the trash, which frees its place under the response limit.
    async fn trash_submission(
        &self,
        submission: SubmissionRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>>;

    /// Restores a submission from the trash, or releases it from quarantine if that is its `status`, if the response limit allows.
    /// A released one counts and is delivered as if it had just arrived. A replay returns the original result.
    async fn restore_submission(
        &self,
        submission: SubmissionRef,
        status: SubmissionStatus,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Submission>>;

    /// Erases a submission at the expected revision, in the trash or not, as its form; then, in the background and continued after
    /// a restart, the states that its edits replaced.
    async fn purge_submission(
        &self,
        submission: SubmissionRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>>;
}

/// Default number of items per page.
pub const DEFAULT_PAGE: usize = 100;

/// Maximum bytes per page: a thousand of the largest submissions would be a gigabyte.
pub const PAGE_BYTES: usize = 1 << 20;

/// Maximum bytes of an item on the wire, without its texts.
pub const ITEM_OVERHEAD: usize = 320;

/// Workspaces and API keys.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Inserts the first workspace and its first key into an empty store. Returns `false`, with no effect, if there
    /// is a workspace already.
    async fn bootstrap(&self, workspace: Workspace, key: ApiKey) -> Result<bool>;

    /// Adds a workspace with its first key. `Done` and `Replayed` both return it.
    async fn insert_workspace(&self, new: NewWorkspace) -> Result<StepResult<Workspace>>;

    /// Adds a key to an existing workspace. A replay returns the key without its hash.
    async fn insert_key(&self, new: NewKey) -> Result<StepResult<ApiKey>>;

    /// Replaces a valid key of the workspace by the new one, which is returned; a replay returns it without its hash.
    async fn rotate_key(
        &self,
        workspace: WorkspaceId,
        key: KeyId,
        rotation: Rotation,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<ApiKey>>;

    /// Deletes a key of the workspace, unless it is the last one that manages keys.
    async fn delete_key(&self, workspace: WorkspaceId, key: KeyId, now: Timestamp) -> Result<StepResult<()>>;

    /// Returns a key, expired or not.
    async fn find_key(&self, id: KeyId) -> Result<Option<Arc<ApiKey>>>;

    /// Lists the keys of a workspace, newest first, each with the time recorded by
    /// [`record_key_uses`](Self::record_key_uses).
    async fn list_keys(&self, workspace: WorkspaceId) -> Result<Vec<(Arc<ApiKey>, Option<Timestamp>)>>;

    /// Records when keys were last used. Keys that no longer exist are ignored.
    async fn record_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()>;

    async fn list_workspaces(&self) -> Result<Vec<Workspace>>;

    async fn find_workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>>;

    /// Deletes a workspace, on a request from the workspace `own`: its keys end at once; then its forms are erased in the
    /// background, continued after a restart. Only requests received before can still find them.
    async fn delete_workspace(&self, id: WorkspaceId, own: WorkspaceId) -> Result<StepResult<()>>;
}

/// Records of requests with idempotency keys, each kept for 24 hours.
#[async_trait]
pub trait Idempotency: Send + Sync {
    /// Returns the record of an earlier request with this idempotency key.
    async fn find_record(&self, key: &IdempotencyKey, now: Timestamp) -> Result<EarlierRequest>;

    /// Records the response, JSON without secrets, to a request that has already been carried out: a repeated request gets
    /// it too. That of a request that changes a form is recorded by [`replace_form`](Forms::replace_form).
    async fn put_response(&self, key: IdempotencyKey, response: String, now: Timestamp) -> Result<()>;
}

/// Operations on the store as a whole.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Returns the health; never blocks.
    fn health(&self) -> StoreHealth;

    /// Returns the secret that cursors are signed with. It lasts for the life of the store, unless the clock is set
    /// back.
    async fn signing_key(&self) -> Result<[u8; 32]>;

    /// Returns whether this process is to run the maintenance of the next hour: of several with one store, one does.
    async fn lead_maintenance(&self) -> Result<bool> {
        Ok(true)
    }

    /// Returns what maintenance recorded of the clock; `None` before its first run.
    async fn clock_record(&self) -> Result<Option<ClockRecord>>;

    /// Stores the clock record of a maintenance run.
    async fn put_clock_record(&self, record: ClockRecord) -> Result<()>;

    /// Erases forms and submissions that were trashed, or quarantined, before `cutoff`. Returns how many.
    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize>;

    /// Starts erasing idempotency records that have expired at `now`, in the background.
    fn erase_expired_keys(&self, now: Timestamp);

    /// Opens the files of the store as they are at one point, with those that lie beside its data: its secrets and exports.
    async fn snapshot(&self) -> Result<Vec<StoreFile>>;

    /// Requests that space of what was overwritten and deleted is freed, in the background. Then what was erased before is in no
    /// file of the journal.
    fn compact(&self);

    async fn usage(&self) -> Result<StoreUsage>;

    /// Counts the submissions of all forms, except those in the trash.
    async fn count_all_submissions(&self) -> Result<u64>;

    /// Reads all of the journal, and compares the index with it. A wrong index is rebuilt.
    async fn verify(&self) -> Result<JournalCheck>;

    /// Publishes the server's address to processes that find the store locked.
    fn announce(&self, address: &str);

    /// Stops cleanly: finishes what was started, keeps what was acknowledged.
    async fn close(&self) -> Result<()>;
}

/// A complete store.
pub trait Store: Forms + Submissions + Keys + Deliveries + Idempotency + Maintenance + Records {}

impl<T: Forms + Submissions + Keys + Deliveries + Idempotency + Maintenance + Records> Store for T {}
