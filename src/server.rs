//! Composition: store, app and router put together, served, and taken apart in the right order.
//!
//! [`run`] is the server; [`open_local`] is the same without a listener, for commands that work on a data directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::app::{App, MaintenanceOutcome, add_operator_key, bootstrap};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::config::{Config, Exposed};
use crate::cpu_pool::CpuPool;
use crate::http::server::accept_loop::serve;
use crate::http::server::tls::{Tls, TlsError};
use crate::http::{HttpService, router, starting};
use crate::secret::{KeyText, SystemRandomness};
use crate::store::sled::SledStore;
use crate::store::sled::engine::options::{EngineEvent, EngineOptions};
use crate::store::{Health, Keys, Maintenance, OpenError, Store, StoreError, is_held_by_ended_process};

/// Why a server does not start, or a data directory does not open.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The settings would send keys and answers in the clear.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The store does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store opened, and then failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file with the operator key cannot be read or written.
    #[error("cannot use the key file `{path}`")]
    KeyFile { path: PathBuf, source: io::Error },
}

/// A server that is about to accept requests.
#[derive(Debug)]
pub struct Serving<'a> {
    /// The address it listens on, with the real port.
    pub address: SocketAddr,
    /// The base URL for commands on this machine.
    pub local_url: String,
    /// The base URL for clients.
    pub url: String,
    /// The operator key, if the data directory has it.
    pub key: Option<&'a KeyText>,
}

/// Serves the data directory of `config` until `shutdown` resolves; then requests in progress are finished and the store is
/// closed. `ready` is called once, before the first request is served.
///
/// Whenever `reload` resolves, the TLS certificate is read again.
///
/// The listener is open before the store is: while the store opens, which takes long if its index must be rebuilt,
/// `/readyz` reports the progress and other requests get 503.
pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    reload: impl AsyncFnMut(),
    ready: impl FnOnce(&Serving<'_>),
) -> Result<(), ServerError> {
    config.check()?;
    let tls = config.tls.clone().map(Tls::load).transpose()?;
    let listener = listen(&config).await?;
    let address =
        listener.local_addr().map_err(|source| ServerError::Listen { address: config.listen, source })?;
    let mut shutdown = pin!(shutdown);
    let Some((listener, opened)) = open_serving(&config, listener, tls.as_ref(), &mut shutdown).await? else {
        return Ok(());
    };
    let local_url = local_url(address, tls.is_some());
    opened.app.store.announce(&local_url);
    let url =
        config.http.base_url.as_ref().map_or_else(|| local_url.clone(), |base| base.as_str().to_owned());
    ready(&Serving { address, local_url, url, key: opened.key.as_ref() });
    tokio::select! {
        () = serve(listener, opened.api.clone(), &config.http, tls.as_ref(), shutdown) => {}
        () = keep_up(&opened.app, config.trash_days) => {}
        () = reload_certificate(tls.as_ref(), reload) => {}
    }
    opened.close().await
}

/// Reads the certificate again whenever `next` resolves. Never ends.
async fn reload_certificate(tls: Option<&Tls>, mut next: impl AsyncFnMut()) {
    loop {
        next().await;
        match tls.map(Tls::reload) {
            Some(Ok(())) => tracing::info!("reloaded the TLS certificate"),
            Some(Err(error)) => {
                tracing::error!(%error, "cannot reload the TLS certificate; the previous one stays in use");
            }
            None => {}
        }
    }
}

/// Runs maintenance now and once an hour, until dropped.
async fn keep_up(app: &App, trash_days: u32) {
    let mut hourly = tokio::time::interval(Duration::from_secs(60 * 60));
    loop {
        hourly.tick().await;
        match app.maintain(trash_days).await {
            Ok(MaintenanceOutcome::Erased(0)) => {}
            Ok(MaintenanceOutcome::Erased(count)) => {
                tracing::info!(count, "erased what was in the trash for {trash_days} days");
            }
            Ok(MaintenanceOutcome::Waiting { millis }) => {
                let hours = millis / 3_600_000;
                tracing::warn!(hours, "the clock is more than a day ahead of the last run; the trash waits");
            }
            Err(error) => {
                tracing::warn!(%error, "maintenance failed; it is tried again in an hour")
            }
        }
    }
}

/// An open data directory, for requests without a network.
pub struct Local {
    pub api: HttpService,
    /// The operator key, if the data directory has it.
    pub key: Option<KeyText>,
    app: Arc<App>,
}

impl Local {
    /// Closes the store. Nothing is lost without it, but the next opening is slower.
    pub async fn close(self) -> Result<(), ServerError> {
        Ok(self.app.store.close().await?)
    }
}

/// Opens the data directory `data` for the commands of one process, and creates it if it is missing. Waits up to 10 seconds
/// if another process holds it.
pub async fn open_local(data: &Path) -> Result<Local, ServerError> {
    let config = Config::new(data);
    let options = EngineOptions { verify_index: false, preallocate: false, ..options(&config) };
    let pool = CpuPool::default();
    let store = open_store(&config, options, pool.clone(), |_| ()).await?;
    assemble(&config, store, pool).await
}

/// Listens on the address of `config`. A killed server of the same store may hold the address for a while; then waits as
/// long as for the store.
async fn listen(config: &Config) -> Result<TcpListener, ServerError> {
    let (address, deadline) = (config.listen, Instant::now() + options(config).lock_wait);
    let mut bound = TcpListener::bind(address).await;
    if is_in_use(&bound) && is_held_by_ended_process(&config.data) {
        tracing::warn!(%address, "a server that was killed still has the address; waiting for it to end");
        while is_in_use(&bound) && Instant::now() < deadline {
            sleep(Duration::from_millis(20)).await;
            bound = TcpListener::bind(address).await;
        }
    }
    bound.map_err(|source| ServerError::Listen { address, source })
}

fn is_in_use(bound: &io::Result<TcpListener>) -> bool {
    matches!(bound, Err(error) if error.kind() == io::ErrorKind::AddrInUse)
}

/// Returns the base URL at which commands on this machine reach a server that listens on `address`.
fn local_url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// Opens the store, while the listener answers that it is being opened. Returns `None`, with the listener closed, if
/// `shutdown` resolves first.
async fn open_serving(
    config: &Config,
    listener: TcpListener,
    tls: Option<&Tls>,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<(TcpListener, Local)>, ServerError> {
    let health = Arc::new(Mutex::new(Health::Rebuilding { done: 0, total: 0 }));
    let progress = Arc::clone(&health);
    let pool = CpuPool::default();
    let mut opening = pin!(open_store(config, options(config), pool.clone(), move |event| {
        if let EngineEvent::Progress { done, total } = *event {
            *progress.lock().unwrap_or_else(PoisonError::into_inner) = Health::Rebuilding { done, total };
        }
    }));
    let health = Arc::new(move || health.lock().unwrap_or_else(PoisonError::into_inner).clone());
    let mut store = None;
    let waiting = async {
        tokio::select! {
            opened = &mut opening => store = Some(opened),
            () = shutdown => {}
        }
    };
    serve(&listener, starting(config.http.clone(), health), &config.http, tls, waiting).await;
    let Some(store) = store else {
        drop(listener);
        // Opening cannot be cancelled: it is completed, so that the store is closed in a consistent state.
        opening.await?.close().await?;
        return Ok(None);
    };
    Ok(Some((listener, assemble(config, store?, pool).await?)))
}

fn options(config: &Config) -> EngineOptions {
    EngineOptions { min_free: config.min_free, cache_size: config.cache_size, ..EngineOptions::default() }
}

/// Opens the store of `config` on a blocking thread. Its events are logged and passed to `on_event`.
async fn open_store(
    config: &Config,
    options: EngineOptions,
    long_reads: CpuPool,
    on_event: impl Fn(&EngineEvent) + Send + Sync + 'static,
) -> Result<SledStore, ServerError> {
    let path = config.data.clone();
    let report = Arc::new(move |event| {
        log(&event);
        on_event(&event);
    });
    let random = Arc::new(SystemRandomness::new());
    let open = move || SledStore::open(&path, options, long_reads, random, report);
    match spawn_blocking(open).await {
        Ok(opened) => Ok(opened?),
        Err(panicked) => Err(StoreError::Panicked(panicked.to_string()).into()),
    }
}

fn log(event: &EngineEvent) {
    match event {
        EngineEvent::JobFailed { .. } | EngineEvent::DigestMismatch { .. } => {
            tracing::error!("store: {event}")
        }
        EngineEvent::Progress { .. } | EngineEvent::Verified => tracing::debug!("store: {event}"),
        EngineEvent::Rebuilt => tracing::info!("store: {event}"),
        _ => tracing::warn!("store: {event}"),
    }
}

/// Time between attempts to read an index that is being rebuilt.
const REBUILD_POLL: Duration = Duration::from_millis(20);

async fn assemble(config: &Config, store: SledStore, pool: CpuPool) -> Result<Local, ServerError> {
    let clock = Arc::new(SystemClock);
    let key = loop {
        match operator_key(&store, &config.data, &*clock).await {
            // Its verification found the index damaged just after it was opened: it is rebuilt.
            Err(ServerError::Store(StoreError::Unavailable(_)))
                if !matches!(store.health(), Health::Stopped(_)) =>
            {
                sleep(REBUILD_POLL).await;
            }
            found => break found?,
        }
    };
    let store: Arc<dyn Store> = Arc::new(store);
    let random = Arc::new(SystemRandomness::new());
    let app = Arc::new(App::new(store, pool, clock, random, config.content));
    let api = router(Arc::clone(&app), config.http.clone());
    Ok(Local { api, key, app })
}

/// Returns the operator key in `data`, if it opens the store. Creates one if the store is empty, and replaces a damaged one.
async fn operator_key(
    store: &SledStore,
    data: &Path,
    clock: &dyn Clock,
) -> Result<Option<KeyText>, ServerError> {
    let path = data.join("operator-key");
    let failed = |source| ServerError::KeyFile { path: path.clone(), source };
    let (random, now, file) = (SystemRandomness::new(), clock.now(), path.display());
    let found = read_key(&path).map_err(failed)?;
    if store.list_workspaces().await?.is_empty() {
        let key = match found {
            KeyFile::Key(key) => key,
            KeyFile::Missing | KeyFile::Damaged => {
                let key = KeyText::draw(&random);
                // Before the store has the key: after a crash in between, nobody could use the store.
                write_key(&path, &key).map_err(failed)?;
                key
            }
        };
        bootstrap(store, &key, &random, now).await?;
        return Ok(Some(key));
    }
    match found {
        KeyFile::Key(key) => {
            let known = store.find_key(key.id()).await?;
            Ok(known.is_some_and(|known| key.matches(&known.hash)).then_some(key))
        }
        KeyFile::Missing => {
            tracing::warn!(%file, "the operator key is missing here: commands of this user need another key");
            Ok(None)
        }
        KeyFile::Damaged => match replace_key(store, &path, now).await {
            Ok(key) => {
                tracing::warn!(%file, "the operator key was damaged: there is a new one, and the old one stays valid");
                Ok(Some(key))
            }
            Err(error) => {
                tracing::warn!(%file, %error, "the operator key is damaged and cannot be replaced");
                Ok(None)
            }
        },
    }
}

/// Replaces a damaged key by a new one. The store gets it before the file: a crash in between leaves the damaged file for
/// the next start.
async fn replace_key(store: &SledStore, path: &Path, now: Timestamp) -> Result<KeyText, ServerError> {
    let key = KeyText::draw(&SystemRandomness::new());
    add_operator_key(store, &key, now).await?;
    write_key(path, &key).map_err(|source| ServerError::KeyFile { path: path.to_owned(), source })?;
    Ok(key)
}

/// State of the file with the operator key.
enum KeyFile {
    Key(KeyText),
    Missing,
    /// Not a key: those have a checksum.
    Damaged,
}

fn read_key(path: &Path) -> io::Result<KeyFile> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(KeyFile::Missing),
        Err(error) => return Err(error),
    };
    let key = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    Ok(key.map_or(KeyFile::Damaged, KeyFile::Key))
}

/// Writes the file atomically, and returns once it is durable.
fn write_key(path: &Path, key: &KeyText) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    // A symbolic link planted there must not redirect the key.
    let mut file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&draft)?;
    writeln!(file, "{}", key.reveal())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
