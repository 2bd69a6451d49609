//! Use cases: authorization, validation, and one call to the store each.
//!
//! Independent of HTTP and of the kind of store. Every caller (the server, a command on a data directory) goes through
//! here.

mod cursor;
mod deliveries;
mod error;
mod forms;
mod idempotency;
mod integrations;
mod key_uses;
mod keys;
mod maintenance;
mod manage_submissions;
mod submissions;
mod workspaces;

use std::sync::Arc;

use self::cursor::Cursors;
use self::key_uses::KeyUses;
use crate::api::Code;
use crate::clock::{Clock, Timestamp};
use crate::cpu_pool::CpuPool;
use crate::delivery::DeliveryService;
use crate::domain::form::slug::is_slug;
use crate::domain::form::{Form, Version};
use crate::domain::integration::definition::DefinitionContext;
use crate::domain::json::{self, Value};
use crate::domain::validation::limits::Limits;
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, Random, SubmissionId, WorkspaceId};
use crate::keyed_semaphore::{FairPermit, FairSemaphore, KeyedSemaphore};
use crate::secret::KeyId;
use crate::store::{IdempotencyKey, IdempotentOperation, StepResult, Store, VersionCache};

pub use error::ApiError;
pub use forms::FormListRequest;
pub use idempotency::ReplayableBody;
pub use keys::{bootstrap, oldest_workspace};
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
    async fn cursors(&self, list: String) -> Result<Cursors, ApiError> {
        Ok(Cursors::new(&self.store.signing_key().await?, list))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns what integrations in `workspace` are defined with at the time `now`.
    fn definition_context(&self, workspace: WorkspaceId, now: Timestamp) -> DefinitionContext<'_> {
        let (vault, policy) = (&self.deliveries.vault, &self.deliveries.settings.policy);
        DefinitionContext { workspace, vault, random: &*self.random, policy, now }
    }

    /// Runs `work` on the pool as one of the caller's jobs.
    async fn run_job<T: Send + 'static>(
        &self,
        caller: &Caller,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let _permit = self.job_permit(caller).await?;
        self.pool.run(work).await?
    }

    /// Runs `work` here, or on the pool if it `is_costly`.
    async fn run_here_or_job<T: Send + 'static>(
        &self,
        caller: &Caller,
        is_costly: bool,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if is_costly { self.run_job(caller, work).await } else { work() }
    }

    /// Parses the JSON in `body`, on the pool if it is large.
    async fn parse(&self, caller: &Caller, body: &str) -> Result<Value, ApiError> {
        const LARGE: usize = 64 << 10;
        let text = body.to_owned();
        let work = move || Ok(json::parse(&text)?);
        self.run_here_or_job(caller, body.len() > LARGE, work).await
    }

    /// Waits for a permit for one more job of the caller.
    async fn job_permit(&self, caller: &Caller) -> Result<FairPermit, ApiError> {
        self.jobs.acquire(caller.id).await.ok_or_else(ApiError::overloaded)
    }

    /// Finds the form with the id or slug `text`, outside the trash, with its questions.
    async fn current(&self, caller: &Caller, text: &str) -> Result<Current, ApiError> {
        let form = self.form(caller, text).await?;
        let version = self.current_version(&form).await?;
        Ok(Current { form, version })
    }

    /// Returns the current version of `form`, compiled.
    async fn current_version(&self, form: &Form) -> Result<Arc<Version>, ApiError> {
        self.version(form.workspace, form.id, form.version).await
    }

    /// Returns a version of a form outside the trash, compiled.
    async fn version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Arc<Version>, ApiError> {
        let version = self.versions.find(workspace, form, number).await?;
        version.ok_or_else(|| ApiError::not_found(Code::FormNotFound, &form.to_string()))
    }

    /// Finds the form with the id or slug `text`, outside the trash.
    async fn form(&self, caller: &Caller, text: &str) -> Result<Arc<Form>, ApiError> {
        let id = self.form_id(caller, text).await?;
        let found = self.store.find_form(caller.workspace, id).await?;
        found.ok_or_else(|| ApiError::not_found(Code::FormNotFound, text))
    }

    /// Parses `text` as an id, or finds the form with the slug `text`; a form that the caller's key may not be used for does
    /// not exist.
    async fn form_id(&self, caller: &Caller, text: &str) -> Result<FormId, ApiError> {
        let found = self.find_form_id(caller.workspace, text).await?;
        let visible = found.filter(|id| caller.may_use(*id));
        visible.ok_or_else(|| ApiError::not_found(Code::FormNotFound, text))
    }

    /// Parses `text` as an id, which need not exist, or finds the form with the slug `text`.
    async fn find_form_id(&self, workspace: WorkspaceId, text: &str) -> Result<Option<FormId>, ApiError> {
        Ok(match text.parse() {
            Ok(id) => Some(id),
            Err(_) if is_slug(text) => self.store.find_slug(workspace, text).await?,
            Err(_) => None,
        })
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

/// Returns the value of a step, and whether it was replayed. If the object was not found, it is missing with the code
/// `missing` under `id`.
fn into_result<T>(step: StepResult<T>, missing: Code, id: &str) -> Result<(T, bool), ApiError> {
    match step {
        StepResult::Done(value) => Ok((value, false)),
        StepResult::Replayed(value) => Ok((value, true)),
        StepResult::Refused(why) => Err(why.into()),
        StepResult::Recheck => Err(ApiError::overloaded()),
        StepResult::Missing => Err(ApiError::not_found(missing, id)),
    }
}

/// Requires a key that is not limited to some forms.
fn require_unlimited(caller: &Caller) -> Result<(), ApiError> {
    let detail = "this operation needs an API key that is not limited to some forms";
    if caller.forms.is_none() { Ok(()) } else { Err(ApiError::with_detail(Code::InsufficientScope, detail)) }
}

/// Requires a key with `scope` that is not limited to some forms.
fn require_unlimited_scope(caller: &Caller, scope: Scope) -> Result<(), ApiError> {
    require_scope(caller, scope)?;
    require_unlimited(caller)
}

fn require_scope(caller: &Caller, scope: Scope) -> Result<(), ApiError> {
    let detail = || format!("this operation needs an API key with the scope `{scope}`");
    if caller.has_scope(scope) {
        Ok(())
    } else {
        Err(ApiError::with_detail(Code::InsufficientScope, detail()))
    }
}
