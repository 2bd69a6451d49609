//! Use cases: authorization, validation, and one call to the store each.
//!
//! Independent of HTTP and of the kind of store. Every caller (the server, a command on a data directory) goes through
//! here.

mod batches;
mod deliveries;
mod erasure;
mod error;
mod export;
mod forms;
mod idempotency;
mod integrations;
mod key_uses;
mod keys;
mod maintenance;
mod metrics;
mod retention;
mod session;
mod signer;
mod store;
mod submissions;
mod visitors;
mod workspaces;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use self::key_uses::KeyUses;
use self::signer::{Cursors, Signer};
use self::store::Verification;
use crate::api::Code;
use crate::clock::{Clock, Timestamp};
use crate::cpu_pool::CpuPool;
use crate::delivery::DeliveryService;
use crate::domain::form::{Form, Version};
use crate::domain::integration::definition::DefinitionContext;
use crate::domain::validation::limits::Limits;
use crate::domain::workspace::Caller;
use crate::id::{FormId, Random, SubmissionId, WorkspaceId};
use crate::keyed_semaphore::{FairSemaphore, KeyedSemaphore};
use crate::metrics::Metrics;
use crate::secret::KeyId;
use crate::store::{IdempotencyKey, IdempotentOperation, StepResult, Store, StoreHealth, VersionCache};

pub use batches::BatchRequest;
pub use erasure::ErasureRequest;
pub use error::{ApiError, Result};
pub use export::{Export, ExportFormat};
pub use forms::FormListRequest;
pub use idempotency::ReplayableBody;
pub use keys::{bootstrap, oldest_workspace};
pub use maintenance::MaintenanceOutcome;
pub use session::Session;
pub use submissions::{Accepted, SubmissionListRequest};
pub use visitors::{PageToken, Visitor};

/// Maximum attempts to store a change. A submission is validated again if its form is edited meanwhile. Edits of one object
/// wait for each other, but one whose caller has disconnected may still be written.
const MAX_TRIES: usize = 3;

/// Maximum number of exports in progress.
const MAX_EXPORTS: usize = 16;

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
    /// Counters and figures of this server, for Prometheus.
    pub metrics: Arc<Metrics>,
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
    /// One permit: backups share the disk with submissions.
    backups: Arc<Semaphore>,
    /// Exports in progress, limited fairly by API key: each holds a page of submissions.
    exports: FairSemaphore<KeyId>,
    verification: Mutex<Verification>,
    is_stopping: AtomicBool,
    opened_at: Timestamp,
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
        let metrics = Arc::clone(&deliveries.metrics);
        metrics::add_series(&metrics);
        Self {
            deliveries,
            metrics,
            opened_at: clock.now(),
            clock,
            random,
            limits,
            jobs: FairSemaphore::new(pool.limits.jobs, pool.limits.max_wait),
            versions: VersionCache::new(Arc::clone(&store), pool.clone(), VERSION_BYTES),
            store,
            key_uses: KeyUses::default(),
            form_edits: KeyedSemaphore::new(1),
            submission_edits: KeyedSemaphore::new(1),
            idempotent_requests: KeyedSemaphore::new(1),
            backups: Arc::new(Semaphore::new(1)),
            exports: FairSemaphore::new(MAX_EXPORTS, pool.limits.max_wait),
            pool,
            verification: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Returns the cursors of `list`, a text that identifies the list and its filters. The signing key is read each time,
    /// because the store replaces it when earlier positions become invalid.
    async fn cursors(&self, list: String) -> Result<Cursors> {
        self.signer(list).await.map(Cursors)
    }

    /// Returns what signs texts for `purpose`.
    async fn signer(&self, purpose: String) -> Result<Signer> {
        Ok(Signer::new(&self.store.signing_key().await?, purpose))
    }

    /// Returns the health of the store, or that the server is stopping.
    pub fn health(&self) -> StoreHealth {
        match self.is_stopping.load(Ordering::Relaxed) {
            true => StoreHealth::Stopped("the server is stopping".to_owned()),
            false => self.store.health(),
        }
    }

    /// Has [`health`](Self::health) report that the server is stopping, so that balancers use others.
    pub fn stop_being_ready(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns what integrations in `workspace` are defined with at the time `now`.
    fn definition_context(&self, workspace: WorkspaceId, now: Timestamp) -> DefinitionContext<'_> {
        let (vault, policy) = (&self.deliveries.vault, &self.deliveries.settings.policy);
        DefinitionContext { workspace, vault, random: &*self.random, policy, now }
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
fn into_result<T>(step: StepResult<T>, missing: Code, id: &str) -> Result<(T, bool)> {
    match step {
        StepResult::Done(value) => Ok((value, false)),
        StepResult::Replayed(value) => Ok((value, true)),
        StepResult::Refused(why) => Err(why.into()),
        StepResult::Recheck => Err(ApiError::overloaded()),
        StepResult::Missing => Err(ApiError::not_found(missing, id)),
    }
}
