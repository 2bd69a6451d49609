//! Use cases: who may do it, is what was sent right, and one decision of the store.
//!
//! Knows nothing of HTTP and of how the store works. Every way in (the server, a command on a data directory) comes
//! through here.

mod cursor;
mod forms;
mod keys;
mod maintenance;
mod manage_submissions;
mod submissions;
mod versions;

use std::sync::Arc;

use self::cursor::Cursors;
use self::versions::VersionCache;
use crate::clock::{Clock, Timestamp};
use crate::cpu_pool::{CpuPool, PoolError};
use crate::domain::form::admission::Refusal;
use crate::domain::form::slug::is_slug;
use crate::domain::form::{Form, Version};
use crate::domain::json::SyntaxError;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, Random, SubmissionId};
use crate::keyed_semaphore::{FairPermit, FairSemaphore, KeyedSemaphore};
use crate::secret::KeyId;
use crate::store::{IdempotencyKey, IdempotentOperation, StepResult, Store, StoreError};

pub use forms::{FormListRequest, FormView};
pub use keys::{add_operator_key, bootstrap};
pub use maintenance::MaintenanceOutcome;
pub use submissions::{Accepted, DryRunSubmission, SubmissionListRequest};

/// Everything a use case needs.
pub struct App {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    limits: Limits,
    pool: CpuPool,
    versions: VersionCache,
    /// The jobs on the pool, by API key: one never keeps out all others.
    jobs: FairSemaphore<KeyId>,
    /// Edits are checked off the store's writer thread, which may take long, and written only if nothing has changed
    /// since. Those of one form or submission are made one after the other: each succeeds at its first try.
    form_edits: KeyedSemaphore<FormId>,
    submission_edits: KeyedSemaphore<SubmissionId>,
}

/// A form with its present questions.
#[derive(Debug, Clone)]
pub struct Current {
    pub form: Arc<Form>,
    pub version: Arc<Version>,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
    /// How many items all pages have together, if that was asked for and counting them did not take too long.
    pub total: Option<u64>,
}

/// Why a use case did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// No key, or one that opens nothing.
    #[error("the API key is missing or not valid")]
    Unauthenticated,
    /// The key may not do this.
    #[error("the API key lacks the scope `{0}`")]
    Forbidden(Scope),
    /// There is no such object in the caller's workspace.
    #[error("no {0}")]
    NotFound(Resource),
    /// The body is no JSON.
    #[error("{0}")]
    Malformed(SyntaxError),
    /// The domain said no.
    #[error("refused")]
    Refused(Refusal),
    /// The cursor is none of ours, or was given for another list.
    #[error("the cursor does not belong to this list")]
    InvalidCursor,
    /// What a list is asked for can never be; this says what can.
    #[error("the query is not valid")]
    InvalidQuery(Vec<Violation>),
    /// Too much work is queued, or the form or submission kept changing; the same request may succeed in a moment.
    #[error("too much work is queued, or the form or submission is changing too fast")]
    Overloaded,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    Form(String),
    Submission(String),
    Version(String),
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Form(id) => write!(f, "form `{id}`"),
            Self::Submission(id) => write!(f, "submission `{id}`"),
            Self::Version(number) => write!(f, "version `{number}`"),
        }
    }
}

impl App {
    /// The use cases on `store`. What takes long runs on `pool`.
    pub fn new(
        store: Arc<dyn Store>,
        pool: CpuPool,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        limits: Limits,
    ) -> Self {
        Self {
            store,
            clock,
            random,
            limits,
            jobs: FairSemaphore::new(pool.limits().jobs, pool.limits().max_wait),
            pool,
            versions: VersionCache::default(),
            form_edits: KeyedSemaphore::new(1),
            submission_edits: KeyedSemaphore::new(1),
        }
    }

    /// Signs positions in `list`. The key is read anew each time: the store draws another one when positions given out
    /// before would mislead.
    async fn cursors(&self, list: String) -> Result<Cursors, AppError> {
        Ok(Cursors::new(&self.store.signing_key().await?, list))
    }

    /// The store, for what concerns it as a whole.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Where work that takes long runs.
    pub fn pool(&self) -> &CpuPool {
        &self.pool
    }

    /// Bounds on what a definition or a set of answers may hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Random bytes.
    pub fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// Runs `work` on the pool, as one of the caller's jobs.
    async fn run_job<T: Send + 'static>(
        &self,
        caller: &Caller,
        work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        let _permit = self.job_permit(caller).await?;
        self.pool.run(work).await?
    }

    /// Waits until the caller may have one more job on the pool.
    async fn job_permit(&self, caller: &Caller) -> Result<FairPermit, AppError> {
        self.jobs.acquire(caller.id).await.ok_or(AppError::Overloaded)
    }

    /// The form that `text` names, in the caller's workspace and outside the trash, with its questions.
    async fn current(&self, caller: &Caller, text: &str) -> Result<Current, AppError> {
        let form = self.form(caller, text).await?;
        let version = self.present_version(&form).await?;
        Ok(Current { form, version })
    }

    /// The form that `text` names, in the caller's workspace and outside the trash.
    async fn form(&self, caller: &Caller, text: &str) -> Result<Arc<Form>, AppError> {
        let id = self.form_id(caller, text).await?;
        self.store.find_form(caller.workspace, id).await?.ok_or_else(|| no_form(text))
    }

    /// The id that `text` is, or that of the form which has it as its slug.
    async fn form_id(&self, caller: &Caller, text: &str) -> Result<FormId, AppError> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let found = match is_slug(text) {
            true => self.store.find_slug(caller.workspace, text).await?,
            false => None,
        };
        found.ok_or_else(|| no_form(text))
    }
}

impl From<PoolError> for AppError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded => Self::Overloaded,
            PoolError::Panicked(what) => Self::Store(StoreError::Panicked(what)),
        }
    }
}

/// A request that its sender may repeat: the value of `Idempotency-Key`, and the query and body as they came.
#[derive(Debug, Clone, Copy)]
pub struct IdempotentRequest<'a> {
    pub idempotency_key: Option<&'a str>,
    pub query: &'a str,
    pub body: &'a str,
}

impl IdempotentRequest<'_> {
    /// What the store knows this attempt of `caller` at `operation` by; `None` if it has no idempotency key.
    fn idempotency_key(&self, caller: &Caller, operation: IdempotentOperation) -> Option<IdempotencyKey> {
        let key = xxhash_rust::xxh3::xxh3_128(self.idempotency_key?.as_bytes());
        let mut body = xxhash_rust::xxh3::Xxh3::new();
        body.update(self.query.as_bytes());
        body.update(&[0]);
        body.update(self.body.as_bytes());
        Some(IdempotencyKey { caller: caller.id, operation, key, body: body.digest128() })
    }
}

/// What a step gave, and whether an earlier attempt had done it. `missing` is what there is not, if that is so.
fn into_result<T>(step: StepResult<T>, missing: Resource) -> Result<(T, bool), AppError> {
    match step {
        StepResult::Done(value) => Ok((value, false)),
        StepResult::Replayed(value) => Ok((value, true)),
        StepResult::Refused(why) => Err(AppError::Refused(why)),
        StepResult::Recheck => Err(AppError::Overloaded),
        StepResult::Missing => Err(AppError::NotFound(missing)),
    }
}

/// The form that `text` names is not there.
fn no_form(text: &str) -> AppError {
    AppError::NotFound(Resource::Form(text.to_owned()))
}

fn require_scope(caller: &Caller, scope: Scope) -> Result<(), AppError> {
    if caller.has_scope(scope) { Ok(()) } else { Err(AppError::Forbidden(scope)) }
}
