//! Embedded store: a synced journal, with sled as its index.
//!
//! Two layers: the engine ([`engine`]) makes rows under byte keys durable and knows no business; `layout` and the
//! other modules here are the business on top of it, and know no files.

pub mod engine;

mod block;
mod counters;
mod decoded_cache;
mod edits;
mod form_search;
mod form_trash;
mod forms;
mod idempotency;
mod keys;
mod layout;
mod locate;
mod recount;
mod slugs;
mod startup_check;
mod submission_codec;
mod submission_search;
mod submission_trash;
mod submissions;
mod versions;
mod workspaces;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use self::decoded_cache::{ChangeCounter, DecodedCache};
use self::engine::Engine;
use self::engine::job::Progress;
use self::engine::operation::WriteKind;
use self::engine::options::{EngineOptions, EventSink, OpenError};
use self::engine::reader::Reader;
use self::engine::tx::{Direction, KeyRange, Tx};
use super::{DEFAULT_PAGE, Health, Maintenance, Result, StoreError};
use crate::clock::Timestamp;
use crate::cpu_pool::{CpuPool, PoolError};
use crate::domain::form::Form;
use crate::domain::trash::ClockRecord;
use crate::domain::workspace::ApiKey;
use crate::id::Random;

/// Maximum rows read on the caller's thread: a default page, and one more row that shows whether another page
/// follows.
const SHORT_SCAN: usize = DEFAULT_PAGE + 1;

/// Rows per batch of background work.
const BATCH_ROWS: usize = 100;

/// Embedded store. Cheap to clone; all clones share one store.
#[derive(Clone)]
pub struct SledStore {
    engine: Engine,
    reader: Reader,
    random: Arc<dyn Random>,
    pool: CpuPool,
    forms: Arc<DecodedCache<Form>>,
    keys: Arc<DecodedCache<ApiKey>>,
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
        let changes = ChangeCounter::default();
        let (forms, keys) = (Arc::new(DecodedCache::new(&changes)), Arc::new(DecodedCache::new(&changes)));
        let options = EngineOptions {
            startup_check: Arc::new(startup_check::check),
            recount: Arc::new(recount::recount),
            on_change: Arc::new(move |key| {
                if key.is_none_or(layout::is_decoded) {
                    changes.record_change();
                }
            }),
            ..options
        };
        let engine = Engine::open_path(path, options, report)?;
        let store = Self { reader: engine.reader().clone(), engine, random, pool, forms, keys };
        let unreadable = |error: StoreError| OpenError::Index(error.to_string());
        store.resume_purges().map_err(unreadable)?;
        Ok(store)
    }

    fn resume_purges(&self) -> Result<()> {
        for (key, _) in
            self.reader.scan(layout::all(layout::FORM_PURGES), Direction::Ascending, usize::MAX)?
        {
            self.resume_purge(layout::listed_form(&key)?);
        }
        for (key, _) in
            self.reader.scan(layout::all(layout::DELETED_WORKSPACES), Direction::Ascending, usize::MAX)?
        {
            self.resume_workspace_purge(layout::listed_workspace(&key)?);
        }
        for (key, _) in
            self.reader.scan(layout::all(layout::HISTORY_PURGES), Direction::Ascending, usize::MAX)?
        {
            let (form, submission) = layout::listed_submission(&key)?;
            self.resume_history_purge(form, submission);
        }
        Ok(())
    }

    /// Deletes the rows in `ranges` in batches in the background, then the `note` that requires it. The remaining
    /// rows are the record of progress.
    fn erase_in_background(&self, ranges: Vec<KeyRange>, note: Vec<u8>) {
        self.engine.background(move |tx| {
            for range in &ranges {
                // No other operation changes rows of a purged object, so the index alone is complete.
                let keys = tx.stored_keys(range.clone(), BATCH_ROWS)?;
                if !keys.is_empty() {
                    keys.into_iter().for_each(|key| tx.delete(key));
                    return Ok(Progress::More);
                }
            }
            tx.delete(note.clone());
            Ok(Progress::Done)
        });
    }

    /// Writes one row.
    async fn put(&self, kind: WriteKind, key: Vec<u8>, body: Vec<u8>) -> Result<()> {
        let work = move |tx: &mut Tx<'_>| {
            tx.put(key, body);
            Ok(())
        };
        self.engine.write_as(kind, work).await
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
    fn health(&self) -> Health {
        self.engine.health()
    }

    async fn signing_key(&self) -> Result<[u8; 32]> {
        let missing = || StoreError::Missing("the signing key".to_owned());
        let body = self.reader.track_damage(self.reader.get(layout::SIGNING_KEY)?.ok_or_else(missing))?;
        body.try_into().map_err(|_length| layout::undecodable("the signing key"))
    }

    async fn clock_record(&self) -> Result<Option<ClockRecord>> {
        self.reader.get(layout::CLOCK)?.map(|body| layout::decode_clock(&body)).transpose()
    }

    async fn put_clock_record(&self, record: ClockRecord) -> Result<()> {
        self.put(WriteKind::Reclaim, layout::CLOCK.to_vec(), layout::encode_clock(record)).await
    }

    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize> {
        Ok(self.erase_trashed_forms(cutoff).await? + self.erase_trashed_submissions(cutoff).await?)
    }

    fn erase_expired_keys(&self, now: Timestamp) {
        self.engine.background(move |tx| idempotency::erase_expired(tx, now));
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
