//! Use cases: authorization, validation, and one call to the store each.
//!
//! Independent of HTTP and of the kind of store. Every caller (the server, a command on a data directory) goes through
//! here.

mod cursor;
mod deliveries;
mod forms;
mod idempotency;
mod integrations;
mod key_uses;
mod keys;
mod maintenance;
mod manage_submissions;
mod sealing;
mod submissions;
mod workspaces;

use std::sync::Arc;

use self::cursor::Cursors;
use self::key_uses::KeyUses;
use crate::clock::{Clock, Timestamp};
use crate::cpu_pool::{CpuPool, PoolError};
use crate::delivery::DeliveryService;
use crate::domain::form::admission::Refusal;
use crate::domain::form::slug::is_slug;
use crate::domain::form::{Form, Version};
use crate::domain::json::{self, SyntaxError, Value};
use crate::domain::open_enum::named_enum;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, Random, SubmissionId, WorkspaceId};
use crate::keyed_semaphore::{FairPermit, FairSemaphore, KeyedSemaphore};
use crate::secret::KeyId;
use crate::store::{IdempotencyKey, IdempotentOperation, StepResult, Store, StoreError, VersionCache};

pub use deliveries::DeliveryView;
pub use forms::{CreatedForm, FormListRequest, FormView};
pub use idempotency::ReplayableBody;
pub use integrations::IntegrationView;
pub use keys::{CreatedKey, bootstrap, oldest_workspace};
pub use maintenance::MaintenanceOutcome;
pub use submissions::{Accepted, SubmissionListRequest};

/// Maximum attempts to store a change. A submission is validated again if its form is edited meanwhile. Edits of one object
/// wait for each other, but one whose caller has disconnected may still be written.
const MAX_TRIES: usize = 3;

/// Approximate bytes of memory for compiled versions.
const VERSION_BYTES: u64 = 64 << 20;

/// The use cases and their shared state.
pub struct App {
    pub store: Arc<dyn Store>,
    /// Runs long computations.
    pub pool: CpuPool,
    /// Limits on definitions and answers.
    pub limits: Limits,
    /// Seals secrets, sends tests and renders what is delivered.
    pub deliveries: Arc<DeliveryService>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    versions: VersionCache,
    key_uses: KeyUses,
    /// Jobs on the pool, limited fairly by API key.
    jobs: FairSemaphore<KeyId>,
    /// Serializes the edits of one form. Edits are checked outside the store's writer thread and written only if nothing
    /// has changed since; one after the other, each succeeds at its first try.
    form_edits: KeyedSemaphore<FormId>,
    submission_edits: KeyedSemaphore<SubmissionId>,
    /// Serializes requests with the same idempotency key whose responses are recorded after they were carried out.
    idempotent_requests: KeyedSemaphore<(KeyId, u128)>,
}

/// A form with the current version of its questions.
#[derive(Debug, Clone)]
pub struct Current {
    pub form: Arc<Form>,
    pub version: Arc<Version>,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<String>,
    /// Total number of items, if requested and counting did not take too long.
    pub total: Option<u64>,
}

/// Why a use case failed.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// No API key, or one that is not valid.
    #[error("the API key is missing or not valid")]
    Unauthenticated,
    /// The API key lacks a scope.
    #[error("this operation needs an API key with the scope `{0}`")]
    Forbidden(Scope),
    /// The API key is limited to some forms, and this concerns more than those.
    #[error("this operation needs an API key that is not limited to some forms")]
    LimitedKey,
    /// The caller's workspace has no such object, with its id as sent.
    #[error("there is no {0} `{1}`")]
    NotFound(Resource, String),
    /// The body is not valid JSON.
    #[error("{0}")]
    Malformed(SyntaxError),
    /// A rule of the domain refused the request.
    #[error("refused")]
    Refused(Refusal),
    /// The cursor is not valid, or belongs to another list.
    #[error("`cursor` is not from this list; start again without it")]
    InvalidCursor,
    /// The query of a list is not valid.
    #[error("the query is not valid")]
    InvalidQuery(Vec<Violation>),
    /// Too much work is queued, or the form or submission kept changing; a retry may succeed.
    #[error("too much work is queued, or the form or submission is changing too fast")]
    Overloaded,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

named_enum! {
    /// A kind of object that was not found.
    Resource {
        Form = "form",
        Submission = "submission",
        Version = "version",
        Integration = "integration",
        Delivery = "delivery",
        Key = "key",
        Workspace = "workspace",
    }
}

impl App {
    /// Creates the use cases on `store`; long computations run on `pool`.
    pub fn new(
        store: Arc<dyn Store>,
        pool: CpuPool,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        limits: Limits,
        deliveries: Arc<DeliveryService>,
    ) -> Self {
        Self {
            deliveries,
            clock,
            random,
            limits,
            jobs: FairSemaphore::new(pool.limits().jobs, pool.limits().max_wait),
            versions: VersionCache::new(Arc::clone(&store), pool.clone(), VERSION_BYTES),
            store,
            pool,
            key_uses: KeyUses::default(),
            form_edits: KeyedSemaphore::new(1),
            submission_edits: KeyedSemaphore::new(1),
            idempotent_requests: KeyedSemaphore::new(1),
        }
    }

    /// Returns the cursors of `list`, a text that identifies the list and its filters. The signing key is read each time,
    /// because the store replaces it when earlier positions become invalid.
    async fn cursors(&self, list: String) -> Result<Cursors, AppError> {
        Ok(Cursors::new(&self.store.signing_key().await?, list))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Runs `work` on the pool as one of the caller's jobs.
    async fn run_job<T: Send + 'static>(
        &self,
        caller: &Caller,
        work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        let _permit = self.job_permit(caller).await?;
        self.pool.run(work).await?
    }

    /// Runs `work` here, or on the pool if it `is_costly`.
    async fn run_here_or_job<T: Send + 'static>(
        &self,
        caller: &Caller,
        is_costly: bool,
        work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        if is_costly { self.run_job(caller, work).await } else { work() }
    }

    /// Parses the JSON in `body`, on the pool if it is large.
    async fn parse(&self, caller: &Caller, body: &str) -> Result<Value, AppError> {
        const LARGE: usize = 64 << 10;
        let text = body.to_owned();
        let work = move || json::parse(&text).map_err(AppError::Malformed);
        self.run_here_or_job(caller, body.len() > LARGE, work).await
    }

    /// Waits for a permit for one more job of the caller.
    async fn job_permit(&self, caller: &Caller) -> Result<FairPermit, AppError> {
        self.jobs.acquire(caller.id).await.ok_or(AppError::Overloaded)
    }

    /// Finds the form with the id or slug `text`, outside the trash, with its questions.
    async fn current(&self, caller: &Caller, text: &str) -> Result<Current, AppError> {
        let form = self.form(caller, text).await?;
        let version = self.current_version(&form).await?;
        Ok(Current { form, version })
    }

    /// Returns the current version of `form`, compiled.
    async fn current_version(&self, form: &Form) -> Result<Arc<Version>, AppError> {
        self.version(form.workspace, form.id, form.version).await
    }

    /// Returns a version of a form outside the trash, compiled.
    async fn version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Arc<Version>, AppError> {
        let version = self.versions.find(workspace, form, number).await?;
        version.ok_or_else(|| no_form(&form.to_string()))
    }

    /// Finds the form with the id or slug `text`, outside the trash.
    async fn form(&self, caller: &Caller, text: &str) -> Result<Arc<Form>, AppError> {
        let id = self.form_id(caller, text).await?;
        self.store.find_form(caller.workspace, id).await?.ok_or_else(|| no_form(text))
    }

    /// Parses `text` as an id, or finds the form with the slug `text`; a form that the caller's key may not be used for does
    /// not exist.
    async fn form_id(&self, caller: &Caller, text: &str) -> Result<FormId, AppError> {
        let found = self.find_form_id(caller.workspace, text).await?;
        found.filter(|id| caller.may_use(*id)).ok_or_else(|| no_form(text))
    }

    /// Parses `text` as an id, which need not exist, or finds the form with the slug `text`.
    async fn find_form_id(&self, workspace: WorkspaceId, text: &str) -> Result<Option<FormId>, AppError> {
        Ok(match text.parse() {
            Ok(id) => Some(id),
            Err(_) if is_slug(text) => self.store.find_slug(workspace, text).await?,
            Err(_) => None,
        })
    }
}

impl From<PoolError> for AppError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded => Self::Overloaded,
            PoolError::Panicked(message) => Self::Store(StoreError::Panicked(message)),
        }
    }
}

/// A request that may be retried: the value of `Idempotency-Key`, the query and the body, as sent.
#[derive(Debug, Clone, Copy)]
pub struct IdempotentRequest<'a> {
    pub idempotency_key: Option<&'a str>,
    pub query: &'a str,
    pub body: &'a str,
}

impl IdempotentRequest<'_> {
    /// Returns the key under which the store records this request; `None` without an `Idempotency-Key`.
    fn idempotency_key(&self, caller: &Caller, operation: IdempotentOperation) -> Option<IdempotencyKey> {
        let key = xxhash_rust::xxh3::xxh3_128(self.idempotency_key?.as_bytes());
        let mut body = xxhash_rust::xxh3::Xxh3::new();
        body.update(self.query.as_bytes());
        body.update(&[0]);
        body.update(self.body.as_bytes());
        Some(IdempotencyKey { caller: caller.id, operation, key, body: body.digest128() })
    }
}

/// Returns the value of a step, and whether it was replayed; `missing` if the object was not found.
fn into_result<T>(step: StepResult<T>, missing: AppError) -> Result<(T, bool), AppError> {
    match step {
        StepResult::Done(value) => Ok((value, false)),
        StepResult::Replayed(value) => Ok((value, true)),
        StepResult::Refused(why) => Err(AppError::Refused(why)),
        StepResult::Recheck => Err(AppError::Overloaded),
        StepResult::Missing => Err(missing),
    }
}

/// Leaves out of `error` which form has a slug, if the caller's key may not be used for that form.
fn conceal_holder(caller: &Caller, error: AppError) -> AppError {
    match error {
        AppError::Refused(Refusal::SlugTaken { slug, holder }) => {
            let holder = holder.filter(|holder| caller.may_use(*holder));
            AppError::Refused(Refusal::SlugTaken { slug, holder })
        }
        other => other,
    }
}

/// The error for a form that was not found.
fn no_form(text: &str) -> AppError {
    AppError::NotFound(Resource::Form, text.to_owned())
}

/// The error for a delivery that was not found.
fn no_delivery(id: &str) -> AppError {
    AppError::NotFound(Resource::Delivery, id.to_owned())
}

/// The error for a submission that was not found.
fn no_submission(id: &str) -> AppError {
    AppError::NotFound(Resource::Submission, id.to_owned())
}

/// The error for a workspace that was not found.
fn no_workspace(id: &str) -> AppError {
    AppError::NotFound(Resource::Workspace, id.to_owned())
}

/// Requires a key that is not limited to some forms.
fn require_unlimited(caller: &Caller) -> Result<(), AppError> {
    if caller.forms.is_none() { Ok(()) } else { Err(AppError::LimitedKey) }
}

/// Requires a key with `scope` that is not limited to some forms.
fn require_unlimited_scope(caller: &Caller, scope: Scope) -> Result<(), AppError> {
    require_scope(caller, scope)?;
    require_unlimited(caller)
}

fn require_scope(caller: &Caller, scope: Scope) -> Result<(), AppError> {
    if caller.has_scope(scope) { Ok(()) } else { Err(AppError::Forbidden(scope)) }
}
