//! Embedded store: a synced journal, with sled as its index.
//!
//! Two layers: the engine ([`engine`]) makes rows under byte keys durable and knows no business; `layout` and the
//! other modules here are the business on top of it, and know no files.

pub mod engine;

mod block;
mod claims;
mod confirmations;
mod counters;
mod decoded_cache;
mod deliveries;
mod delivery_layout;
mod delivery_list;
mod delivery_queue;
mod delivery_rows;
mod delivery_upgrade;
mod delivery_upkeep;
mod events;
mod form_search;
mod form_trash;
mod forms;
mod idempotency;
mod index_hooks;
mod keys;
mod layout;
mod locate;
mod queue;
mod records;
mod row_source;
pub mod salvage;
mod search;
mod slugs;
mod submission_codec;
mod submission_insert;
mod submission_search;
mod submission_trash;
mod submissions;
mod traces;
mod workspaces;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use self::claims::DeliveryClaims;
use self::counters::Counters;
use self::decoded_cache::DecodedCache;
use self::engine::Engine;
use self::engine::disk::Disk;
use self::engine::index::IndexProvider;
use self::engine::journal_check;
use self::engine::operation::WriteKind;
use self::engine::options::{EngineOptions, EventSink, OpenError};
use self::engine::reader::Reader;
use self::engine::rebuild::INDEX;
use self::engine::snapshot::other_files;
use self::engine::tx::Tx;
use self::forms::find_cached;
use self::row_source::RowSource;
use super::step::{Step, Stop, step_result};
use super::{
    DEFAULT_PAGE, Damage, JournalCheck, Maintenance, Result, StepResult, StoreError, StoreFile, StoreHealth,
    StoreUsage,
};
use crate::clock::Timestamp;
use crate::cpu_pool::{CpuPool, PoolError};
use crate::domain::form::Form;
use crate::domain::trash::ClockRecord;
use crate::domain::workspace::ApiKey;
use crate::id::{FormId, FormRef, Random, WorkspaceId};

/// Maximum rows read on the caller's thread: a default page, and one more row that shows whether another page
/// follows.
const SHORT_SCAN: usize = DEFAULT_PAGE + 1;

/// Rows per batch of background work.
const BATCH_ROWS: usize = 100;

/// Embedded store. Cheap to clone; all clones share one store.
#[derive(Clone)]
pub struct SledStore {
    engine: Engine,
    disk: Arc<dyn Disk>,
    reader: Reader,
    pool: CpuPool,
    context: Arc<Context>,
    /// The operator's waits between attempts of deliveries, in milliseconds.
    retry_schedule: Option<Arc<[i64]>>,
}

/// What the writer thread needs of the store. An operation that held the engine, too, would keep its own queue alive.
struct Context {
    random: Arc<dyn Random>,
    forms: DecodedCache<Form>,
    keys: DecodedCache<ApiKey>,
    claims: DeliveryClaims,
}

impl Context {
    /// Forgets the row under `key`, which has changed; all rows if it is `None`.
    fn forget(&self, key: Option<&[u8]>) {
        match key {
            Some(key @ [layout::FORMS, ..]) => drop(self.forms.remove(key)),
            Some(key @ [layout::API_KEYS, ..]) => drop(self.keys.remove(key)),
            Some(_) => {}
            None => {
                self.forms.clear();
                self.keys.clear();
            }
        }
    }
}

impl SledStore {
    /// Opens the store in the folder `path`, creating it if missing, and resumes unfinished purges. Long reads run on
    /// `pool`.
    pub fn open(
        path: &Path,
        options: EngineOptions,
        pool: CpuPool,
        random: Arc<dyn Random>,
        report: EventSink,
    ) -> Result<Self, OpenError> {
        let (disk, indexes) = engine::open_folder(path, &options, &report)?;
        Self::open_disk(disk, indexes, options, pool, random, report)
    }

    /// Opens the store on a disk, as [`open`](Self::open) does.
    pub fn open_disk(
        disk: Arc<dyn Disk>,
        indexes: Arc<dyn IndexProvider>,
        options: EngineOptions,
        pool: CpuPool,
        random: Arc<dyn Random>,
        report: EventSink,
    ) -> Result<Self, OpenError> {
        let context = Arc::new(Context {
            random,
            forms: decoded_cache::new(),
            keys: decoded_cache::new(),
            claims: DeliveryClaims::default(),
        });
        let changed = Arc::clone(&context);
        let options = EngineOptions {
            on_change: Arc::new(move |key| changed.forget(key)),
            startup_check: Arc::new(index_hooks::check),
            recount: Arc::new(index_hooks::recount),
            ..options
        };
        let engine = Engine::open(Arc::clone(&disk), indexes, options, report)?;
        let reader = engine.reader().clone();
        let store = Self { engine, disk, reader, pool, context, retry_schedule: None };
        let unreadable = |error: StoreError| OpenError::Index(error.to_string());
        store.upgrade_deliveries().map_err(unreadable)?;
        store.resume_purges().map_err(unreadable)?;
        store.resume_queues().map_err(unreadable)?;
        Ok(store)
    }

    /// Returns the store with the operator's waits between attempts of deliveries, in milliseconds, instead of those of each
    /// kind of integration.
    #[must_use]
    pub fn with_retry_schedule(self, schedule: Option<Vec<i64>>) -> Self {
        Self { retry_schedule: schedule.map(Into::into), ..self }
    }

    /// Runs a step on the writer thread.
    async fn step<T: Send + 'static>(
        &self,
        kind: WriteKind,
        work: impl FnOnce(&mut Tx<'_>, &Context) -> Step<T> + Send + 'static,
    ) -> Result<StepResult<T>> {
        let context = Arc::clone(&self.context);
        self.engine.write_as(kind, move |tx| step_result(work(tx, &context))).await
    }

    /// Runs a step that may give the queues of a form something to do, and wakes them. The writer does so, because a write that
    /// is queued takes place also if its caller is gone.
    async fn step_and_wake<T: Send + 'static>(
        &self,
        kind: WriteKind,
        form: FormRef,
        work: impl FnOnce(&mut Tx<'_>, &Context) -> Step<T> + Send + 'static,
    ) -> Result<StepResult<T>> {
        let (context, waking) = (Arc::clone(&self.context), Arc::clone(&self.context));
        let work = move |tx: &mut Tx<'_>| {
            let value = step_result(work(tx, &context))?;
            let found = find_cached(tx, &context, form)?;
            Ok((value, found))
        };
        let wake = move |(_, found): &(_, Option<Arc<Form>>)| {
            for integration in found.iter().flat_map(|form| &form.integrations) {
                waking.claims.wake(form.queue(integration.id), Timestamp::from_millis(0));
            }
        };
        Ok(self.engine.write_then(kind, work, wake).await?.0)
    }

    fn resume_purges(&self) -> Result<()> {
        for (key, workspace) in self.reader.scan_all(layout::all(layout::FORM_PURGES))? {
            // A purge that an earlier version has begun is of a form without deliveries, which are all that needs the workspace.
            let workspace =
                workspace.first_chunk().map_or(WorkspaceId::ZERO, |id| WorkspaceId::from_bytes(*id));
            self.resume_purge(workspace.form(layout::last(&key, FormId::from_bytes)?));
        }
        for (key, _) in self.reader.scan_all(layout::all(layout::DELETED_WORKSPACES))? {
            self.resume_workspace_purge(layout::last(&key, WorkspaceId::from_bytes)?);
        }
        for (key, _) in self.reader.scan_all(layout::all(layout::HISTORY_PURGES))? {
            let (form, submission) = layout::listed_submission(&key)?;
            self.resume_submission_purge(form, submission);
        }
        Ok(())
    }

    /// Runs `work` on the caller's thread if it reads few rows, else on the pool.
    async fn scan_on_pool<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if rows <= SHORT_SCAN {
            return work(self);
        }
        let store = self.clone();
        self.pool.run(move || work(&store)).await?
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded => Self::Overloaded,
            PoolError::Panicked(what) => Self::Panicked(what),
        }
    }
}

#[async_trait]
impl Maintenance for SledStore {
    fn health(&self) -> StoreHealth {
        self.engine.health()
    }

    async fn signing_key(&self) -> Result<[u8; 32]> {
        let missing = || StoreError::Missing("the signing key".to_owned());
        let body = self.reader.track_damage(self.reader.get(layout::SIGNING_KEY)?.ok_or_else(missing))?;
        body.try_into().map_err(|_length| layout::undecodable("the signing key"))
    }

    async fn clock_record(&self) -> Result<Option<ClockRecord>> {
        self.reader.read(layout::CLOCK, layout::decode_clock)
    }

    async fn put_clock_record(&self, record: ClockRecord) -> Result<()> {
        let work = move |tx: &mut Tx<'_>| {
            tx.put(layout::CLOCK.to_vec(), layout::encode_clock(record));
            Ok(())
        };
        self.engine.write_as(WriteKind::Reclaim, work).await
    }

    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize> {
        Ok(self.erase_trashed_forms(cutoff).await? + self.erase_trashed_submissions(cutoff).await?)
    }

    fn erase_expired_keys(&self, now: Timestamp) {
        self.engine.background(move |tx| idempotency::erase_expired(tx, now));
    }

    async fn snapshot(&self) -> Result<Vec<StoreFile>> {
        let mut files = self.engine.snapshot().await?;
        let others = other_files(&*self.disk, &["exports", "master-key"]);
        files.extend(others.map_err(|error| StoreError::Unavailable(error.with_cause()))?);
        Ok(files)
    }

    fn compact(&self) {
        self.engine.compact();
    }

    async fn usage(&self) -> Result<StoreUsage> {
        self.engine.usage().await
    }

    async fn count_all_submissions(&self) -> Result<u64> {
        let responses = |body: &[u8]| Ok(Counters::decode(Some(body.to_vec()))?.responses);
        let counters = layout::all(layout::COUNTERS);
        self.scan_on_pool(usize::MAX, move |store| store.reader.sum(counters, SHORT_SCAN, responses)).await
    }

    async fn verify(&self) -> Result<JournalCheck> {
        let disk = Arc::clone(&self.disk);
        let checked = tokio::task::spawn_blocking(move || journal_check::check(&*disk)).await;
        let checked = checked.map_err(|error| StoreError::Panicked(error.to_string()))?;
        let mut checked = checked.map_err(|error| StoreError::Unavailable(error.with_cause()))?;
        if let Some(why) = self.engine.verify_index().await? {
            let (file, what) = (INDEX.to_owned(), format!("{why}; it has been rebuilt from the journal"));
            checked.damage.push(Damage { file, offset: 0, bytes: 0, what });
        }
        Ok(checked)
    }

    fn announce(&self, address: &str) {
        if let Err(error) = self.engine.set_address(address) {
            tracing::warn!(%error, "the lock file does not say where this server listens");
        }
    }

    async fn close(&self) -> Result<()> {
        let engine = self.engine.clone();
        let joined = tokio::task::spawn_blocking(move || engine.close()).await;
        joined.unwrap_or_else(|error| Err(StoreError::Panicked(error.to_string())))
    }
}
