//! The store that the settings name.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::ServerError;
use crate::config::{Config, StoreLocation};
use crate::cpu_pool::CpuPool;
use crate::metrics::Metrics;
use crate::secret::SystemRandomness;
use crate::store::sled::SledStore;
use crate::store::sled::engine::options::{EngineEvent, EngineOptions};
use crate::store::{CopiedKind, JournalCheck, Maintenance, Store, StoreError, StoreHealth, copy, is_copy_of};

/// Pause before a store that cannot answer yet is asked again.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// Opens the store of a server, however long that takes; `health` reports meanwhile what it waits for.
pub(super) async fn open(
    config: &Config,
    pool: CpuPool,
    metrics: &Arc<Metrics>,
    health: watch::Sender<StoreHealth>,
) -> Result<Arc<dyn Store>, ServerError> {
    let [groups, syncs, compactions] = [0; 3].map(|_| Arc::clone(metrics));
    let options = EngineOptions {
        on_group: Arc::new(move |operations| groups.group_operations.observe(operations as f64)),
        on_sync: Arc::new(move |took| syncs.sync_duration.observe(took.as_secs_f64())),
        ..options(config)
    };
    let on_event = move |event: &EngineEvent| match *event {
        EngineEvent::Progress { done, total } => {
            health.send_replace(StoreHealth::Rebuilding { done, total });
        }
        EngineEvent::Compacted { .. } => compactions.compactions.inc(),
        _ => {}
    };
    open_as(config, options, pool, on_event).await
}

/// Opens the store of `config` for the commands of one process.
pub(super) async fn open_local(config: &Config, pool: CpuPool) -> Result<Arc<dyn Store>, ServerError> {
    let options = EngineOptions {
        verify_index: false,
        preallocate: false,
        compact_after: None,
        erase_after: None,
        ..options(config)
    };
    open_as(config, options, pool, |_| ()).await
}

/// The health of the store of `config` before it is opened.
pub(super) fn initial_health(config: &Config) -> StoreHealth {
    match config.store {
        StoreLocation::Folder(_) => StoreHealth::Rebuilding { done: 0, total: 0 },
        StoreLocation::Database(_) => StoreHealth::Away("it was not reached yet".to_owned()),
    }
}

/// Returns the options of an embedded store.
pub(super) fn options(config: &Config) -> EngineOptions {
    EngineOptions { min_free: config.min_free, cache_size: config.cache_size, ..EngineOptions::default() }
}

/// Opens a store; an embedded one with `options`, on a blocking thread. Its events are logged and passed to `on_event`.
async fn open_as(
    config: &Config,
    options: EngineOptions,
    long_reads: CpuPool,
    on_event: impl Fn(&EngineEvent) + Send + Sync + 'static,
) -> Result<Arc<dyn Store>, ServerError> {
    let path = match &config.store {
        StoreLocation::Folder(data) => data.clone(),
        StoreLocation::Database(url) => return database::open(url.reveal(), config, long_reads).await,
    };
    let report = Arc::new(move |event| {
        log(&event);
        on_event(&event);
    });
    let random = Arc::new(SystemRandomness);
    let open = move || SledStore::open(&path, options, long_reads, random, report);
    let opened = spawn_blocking(open).await;
    let opened = opened.map_err(|panicked| StoreError::Panicked(panicked.to_string()))?;
    let store = opened?.with_retry_schedule(config.delivery.retry_schedule.clone());
    loop {
        match store.add_key_entries().await {
            Err(StoreError::Unavailable(_)) if !is_stopped(&store) => sleep(POLL).await,
            // It is tried again at the next start.
            Ok(()) | Err(StoreError::Full) => return Ok(Arc::new(store)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a store that is not available will never be.
pub(super) fn is_stopped(store: &(impl Maintenance + ?Sized)) -> bool {
    matches!(store.health(), StoreHealth::Stopped(_))
}

fn log(event: &EngineEvent) {
    match event {
        EngineEvent::JobFailed { .. } | EngineEvent::DigestMismatch { .. } => {
            tracing::error!("store: {event}")
        }
        EngineEvent::Progress { .. } | EngineEvent::Verified => tracing::debug!("store: {event}"),
        EngineEvent::Rebuilt | EngineEvent::Compacted { .. } => tracing::info!("store: {event}"),
        _ => tracing::warn!("store: {event}"),
    }
}

/// Verifies the store in the database at `url`, and changes nothing.
pub async fn verify_database(url: &str) -> Result<JournalCheck, ServerError> {
    let store = database::open_once(url, true).await?;
    let checked = store.verify().await;
    store.close().await?;
    Ok(checked?)
}

/// Passes over all records, at most: while the source is in use, each finds less that has changed.
const PASSES: usize = 4;

/// The result of a copy.
#[derive(Debug, Clone, Serialize)]
pub struct Copied {
    /// The records of each kind, as the last pass found them.
    pub kinds: Vec<CopiedKind>,
    /// Records that were written or deleted by all passes.
    pub changes: u64,
    /// Whether the last pass has found no difference.
    pub is_equal: bool,
}

/// Makes the store `to` hold what `from` does, neither of them served by this process. `progress` is called with the number of
/// submissions in `from`, and then with numbers of records that were compared.
///
/// # Errors
/// If one of them cannot be used, or `to` holds another store.
pub async fn copy_store(
    from: &StoreLocation,
    to: &StoreLocation,
    progress: impl Fn(Option<u64>, u64) + Send + Sync,
) -> Result<Copied, ServerError> {
    let source = open_for_copy(from, true).await?;
    let target = open_for_copy(to, false).await?;
    let copied = copy_passes(&*source, &*target, progress).await;
    source.close().await?;
    target.close().await?;
    copied
}

async fn copy_passes(
    source: &dyn Store,
    target: &dyn Store,
    progress: impl Fn(Option<u64>, u64) + Send + Sync,
) -> Result<Copied, ServerError> {
    if !is_copy_of(source, target).await? {
        let why = "the target holds another store, which the copy would erase; name an empty one".to_owned();
        return Err(ServerError::InvalidConfig(why));
    }
    let mut changes = 0;
    for pass in 1.. {
        progress(Some(source.count_all_submissions().await?), 0);
        let kinds = copy(source, target, |compared| progress(None, compared)).await?;
        let changed: u64 = kinds.iter().map(|kind| kind.written + kind.deleted).sum();
        changes += changed;
        if changed == 0 || pass == PASSES {
            return Ok(Copied { kinds, changes, is_equal: changed == 0 });
        }
    }
    unreachable!("the last pass returns")
}

async fn open_for_copy(location: &StoreLocation, must_exist: bool) -> Result<Arc<dyn Store>, ServerError> {
    match location {
        StoreLocation::Folder(data) => open_local(&Config::new(data), CpuPool::default()).await,
        StoreLocation::Database(url) => database::open_once(url.reveal(), must_exist).await,
    }
}

#[cfg(feature = "postgres")]
mod database {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::ServerError;
    use crate::config::Config;
    use crate::cpu_pool::CpuPool;
    use crate::secret::SystemRandomness;
    use crate::store::Store;
    use crate::store::postgres::{OpenError, PostgresStore};

    /// Pause between two attempts to reach a database, each of which takes some seconds.
    const PAUSE: Duration = Duration::from_secs(1);

    /// Opens the store in the database at `url`, as soon as it can be reached.
    pub(super) async fn open(
        url: &str,
        config: &Config,
        pool: CpuPool,
    ) -> Result<Arc<dyn Store>, ServerError> {
        let mut is_away = false;
        loop {
            match PostgresStore::open(url, pool.clone(), Arc::new(SystemRandomness)).await {
                Err(OpenError::Store(error)) if error.is_transient() => {
                    if !std::mem::replace(&mut is_away, true) {
                        tracing::warn!(%error, "the database cannot be reached; trying until it can");
                    }
                    sleep(PAUSE).await;
                }
                opened => {
                    let schedule = config.delivery.retry_schedule.clone();
                    return Ok(Arc::new(opened?.with_retry_schedule(schedule)));
                }
            }
        }
    }

    /// Opens the store in the database at `url`, which is created unless it `must_exist`. Does not wait for the database.
    pub(super) async fn open_once(url: &str, must_exist: bool) -> Result<Arc<dyn Store>, ServerError> {
        let (pool, random) = (CpuPool::default(), Arc::new(SystemRandomness));
        Ok(Arc::new(match must_exist {
            true => PostgresStore::open_existing(url, pool, random).await?,
            false => PostgresStore::open(url, pool, random).await?,
        }))
    }

    impl From<OpenError> for ServerError {
        fn from(error: OpenError) -> Self {
            match error {
                OpenError::InvalidUrl(_) => Self::InvalidConfig(error.to_string()),
                OpenError::Store(error) => Self::Store(error),
                OpenError::Empty | OpenError::Older | OpenError::Newer { .. } | OpenError::Refused(_) => {
                    Self::Database(error.to_string())
                }
            }
        }
    }
}

#[cfg(not(feature = "postgres"))]
mod database {
    use std::sync::Arc;

    use super::ServerError;
    use crate::config::Config;
    use crate::cpu_pool::CpuPool;
    use crate::store::Store;

    pub(super) async fn open(_: &str, _: &Config, _: CpuPool) -> Result<Arc<dyn Store>, ServerError> {
        Err(unknown())
    }

    pub(super) async fn open_once(_: &str, _: bool) -> Result<Arc<dyn Store>, ServerError> {
        Err(unknown())
    }

    fn unknown() -> ServerError {
        let why = "this program was built without databases; use a data directory, or build it with the feature `postgres`";
        ServerError::InvalidConfig(why.to_owned())
    }
}
