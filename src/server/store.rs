//! The store that the settings name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
use crate::store::{JournalCheck, Maintenance, Store, StoreError, StoreHealth};

/// Pause before a store that cannot answer yet is asked again.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// Opens the store of a server, however long that takes; `health` reports meanwhile what it waits for.
pub(super) async fn open(
    config: &Config,
    pool: CpuPool,
    metrics: &Arc<Metrics>,
    health: watch::Sender<StoreHealth>,
) -> Result<Arc<dyn Store>, ServerError> {
    let data = match &config.store {
        StoreLocation::Folder(data) => data,
        StoreLocation::Database(url) => return database::open(url.reveal(), config, pool).await,
    };
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
    open_embedded(data, config, options, pool, on_event).await
}

/// Opens the store of `config` for the commands of one process.
pub(super) async fn open_local(config: &Config, pool: CpuPool) -> Result<Arc<dyn Store>, ServerError> {
    let data = match &config.store {
        StoreLocation::Folder(data) => data,
        StoreLocation::Database(url) => return database::open(url.reveal(), config, pool).await,
    };
    let options = EngineOptions {
        verify_index: false,
        preallocate: false,
        compact_after: None,
        erase_after: None,
        ..options(config)
    };
    open_embedded(data, config, options, pool, |_| ()).await
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

/// Opens an embedded store on a blocking thread. Its events are logged and passed to `on_event`.
async fn open_embedded(
    data: &Path,
    config: &Config,
    options: EngineOptions,
    long_reads: CpuPool,
    on_event: impl Fn(&EngineEvent) + Send + Sync + 'static,
) -> Result<Arc<dyn Store>, ServerError> {
    let path = data.to_owned();
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
    database::verify(url).await
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
    use crate::store::postgres::{OpenError, PostgresStore};
    use crate::store::{JournalCheck, Maintenance, Store};

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

    pub(super) async fn verify(url: &str) -> Result<JournalCheck, ServerError> {
        let store = PostgresStore::open_existing(url, CpuPool::default(), Arc::new(SystemRandomness)).await?;
        let checked = store.verify().await;
        store.close().await?;
        Ok(checked?)
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
    use crate::store::{JournalCheck, Store};

    pub(super) async fn open(_: &str, _: &Config, _: CpuPool) -> Result<Arc<dyn Store>, ServerError> {
        Err(unknown())
    }

    pub(super) async fn verify(_: &str) -> Result<JournalCheck, ServerError> {
        Err(unknown())
    }

    fn unknown() -> ServerError {
        let why = "this program was built without databases; use a data directory, or build it with the feature `postgres`";
        ServerError::InvalidConfig(why.to_owned())
    }
}
