//! Composition: store, app and router put together, served, and taken apart in the right order.
//!
//! [`run`] is the server; [`open_local`] is the same without a listener, for commands that work on a data directory.

mod deliveries;
mod mail;
mod master_key;
mod operator_key;
mod private_file;
mod store;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::app::{App, MaintenanceOutcome, oldest_workspace};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::cpu_pool::CpuPool;
use crate::domain::workspace::{ApiKey, Caller};
use crate::http::server::accept_loop::serve;
use crate::http::server::tls::{Tls, TlsError};
use crate::http::{HttpService, LocalOperator, metrics_only, router, starting};
use crate::metrics::Metrics;
use crate::secret::{KeyText, SystemRandomness};
use crate::store::{OpenError, Store, StoreError, is_held_by_ended_process};

pub use mail::check_mail;
pub use operator_key::{read_operator_key, write_operator_key};
pub use store::{Copied, copy_store, verify_database};

/// Why a server does not start, or a data directory does not open.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The settings would send keys and answers in the clear, contradict each other, or are incomplete.
    #[error("{0}")]
    InvalidConfig(String),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The store does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database refuses to be used, or what it has is of another version.
    #[error("{0}")]
    Database(String),
    /// The store opened, and then failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file with the operator key cannot be read or written.
    #[error("cannot use the key file `{path}`")]
    KeyFile { path: PathBuf, source: io::Error },
    /// The file with the master key cannot be read or written, or has no key.
    #[error("cannot use the master key in `{path}`")]
    MasterKey { path: PathBuf, source: io::Error },
    /// The master key is missing, and integrations have secrets that it sealed.
    #[error("the master key `{}` is missing, which opens the secrets of integrations", .0.display())]
    MasterKeyMissing(PathBuf),
    /// The file with the password of the mail server cannot be read, or has none.
    #[error("cannot use the password of the mail server in `{path}`")]
    SmtpPassword { path: PathBuf, source: io::Error },
}

/// Time for which a server of a database goes on after it has reported that it is not ready: a balancer sends the next
/// requests to others meanwhile.
const NOT_READY: Duration = Duration::from_secs(5);

/// A server that is about to accept requests.
#[derive(Debug)]
pub struct Serving<'a> {
    /// The address it listens on, with the real port.
    pub address: SocketAddr,
    /// The base URL for commands on this machine.
    pub local_url: String,
    /// The base URL for clients.
    pub url: String,
    /// The operator key, if its file has it.
    pub key: Option<&'a KeyText>,
}

/// Serves the store of `config` until `shutdown` resolves; then requests in progress are finished and the store is
/// closed. `ready` is called once, before the first request is served.
///
/// Whenever `reload` resolves, the TLS certificate is read again.
///
/// The listener is open before the store is: while the store opens, which takes long if its index must be rebuilt or its
/// database is away, `/readyz` reports the progress and other requests get 503.
pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    reload: impl AsyncFnMut(),
    ready: impl FnOnce(&Serving<'_>),
) -> Result<(), ServerError> {
    config.check().map_err(ServerError::InvalidConfig)?;
    master_key::given(&config.delivery)?;
    let mut shutdown = pin!(shutdown);
    let load = async {
        let Some(files) = config.tls.clone() else { return Ok(None) };
        Tls::load(files).await.map(Some)
    };
    let tls = tokio::select! {
        tls = load => tls?,
        () = &mut shutdown => return Ok(()),
    };
    let listener = listen_at(&config, config.listen).await?;
    let address =
        listener.local_addr().map_err(|source| ServerError::Listen { address: config.listen, source })?;
    let metrics_listener = match config.metrics_listen {
        Some(address) => Some(listen_at(&config, address).await?),
        None => None,
    };
    let Some((listener, opened)) = open_serving(&config, listener, tls.as_ref(), &mut shutdown).await? else {
        return Ok(());
    };
    let local_url = local_url(address, tls.is_some());
    let url =
        config.http.base_url.as_ref().map_or_else(|| local_url.clone(), |base| base.as_str().to_owned());
    // Certificates are rarely valid for the address on which the server listens.
    let local_url = if tls.is_some() { url.clone() } else { local_url };
    opened.app.store.announce(&local_url);
    ready(&Serving { address, local_url, url, key: opened.key.as_ref() });
    let stop = CancellationToken::new();
    let service = Arc::clone(&opened.app.deliveries);
    let deliveries = tokio::spawn(deliveries::run(service, config.delivery.is_paused, stop.clone()));
    // Deliveries stop while requests in progress are finished. What these owe waits for the next start, or another server.
    let shutdown = async {
        shutdown.await;
        stop.cancel();
        opened.app.stop_being_ready();
        if config.store.is_database() {
            sleep(NOT_READY).await;
        }
    };
    tokio::select! {
        () = serve(listener, opened.api.clone(), &config.http, tls.as_ref(), shutdown) => {}
        () = serve_metrics(metrics_listener, &opened.app, &config) => {}
        () = run_maintenance(&opened.app, config.trash_days) => {}
        () = reload_certificate(tls.as_ref(), reload) => {}
    }
    stop.cancel();
    if let Err(error) = deliveries.await {
        tracing::error!(%error, "deliveries did not stop");
    }
    store_key_uses(&opened.app).await;
    opened.close().await
}

/// Serves the metrics on an address of their own, if there is one. Never ends.
async fn serve_metrics(listener: Option<TcpListener>, app: &Arc<App>, config: &Config) {
    let never = std::future::pending();
    let Some(listener) = listener else { return never.await };
    serve(listener, metrics_only(Arc::clone(app), config.http.clone()), &config.http, None, never).await;
}

/// Reads the certificate again whenever `next` resolves. Never ends.
async fn reload_certificate(tls: Option<&Tls>, mut next: impl AsyncFnMut()) {
    loop {
        next().await;
        let Some(tls) = tls else { continue };
        match tls.reload().await {
            Ok(()) => tracing::info!("reloaded the TLS certificate"),
            Err(error) => {
                tracing::error!(%error, "cannot reload the TLS certificate; the previous one stays in use");
            }
        }
    }
}

/// Runs maintenance now and once an hour, and stores once a minute when keys were last used, until dropped.
async fn run_maintenance(app: &App, trash_days: u32) {
    let store_key_uses_each_minute = async {
        let mut minutes = tokio::time::interval(Duration::from_secs(60));
        loop {
            minutes.tick().await;
            store_key_uses(app).await;
        }
    };
    tokio::join!(maintain_hourly(app, trash_days), store_key_uses_each_minute);
}

async fn store_key_uses(app: &App) {
    match app.store_key_uses().await {
        // The store reports a full disk itself, once.
        Ok(()) | Err(StoreError::Full) => {}
        Err(error) => tracing::warn!(%error, "it was not recorded when keys were last used"),
    }
}

async fn maintain_hourly(app: &App, trash_days: u32) {
    let mut hourly = tokio::time::interval(Duration::from_secs(60 * 60));
    loop {
        hourly.tick().await;
        match app.maintain(trash_days).await {
            Ok(MaintenanceOutcome::Elsewhere) => tracing::debug!("another server runs the maintenance"),
            Ok(MaintenanceOutcome::Erased(0)) => {}
            Ok(MaintenanceOutcome::Erased(count)) => {
                tracing::info!(
                    count,
                    "erased what was in the trash for {trash_days} days, or past its retention"
                );
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
    /// The caller of requests without a key, if the data directory has no operator key.
    operator: Option<Caller>,
    app: Arc<App>,
}

impl Local {
    /// Returns the router for the commands of this process. If the data directory has no operator key, requests without a
    /// key are the operator's: whoever can open the store could read and change everything in it.
    pub fn router(&self) -> Router {
        let router = self.api.clone().into_router();
        match &self.operator {
            Some(operator) => router.layer(Extension(LocalOperator(operator.clone()))),
            None => router,
        }
    }

    /// Closes the store. Nothing is lost without it, but the next opening is slower.
    pub async fn close(self) -> Result<(), ServerError> {
        Ok(self.app.store.close().await?)
    }
}

/// Opens the data directory `data` for the commands of one process, and creates it if it is missing. Waits up to 10 seconds
/// if another process holds it.
pub async fn open_local(data: &Path) -> Result<Local, ServerError> {
    open_local_with(&Config::new(data)).await
}

/// Opens the data directory of `config` as [`open_local`] does.
pub async fn open_local_with(config: &Config) -> Result<Local, ServerError> {
    let pool = CpuPool::default();
    let store = store::open_local(config, pool.clone()).await?;
    assemble(config, store, pool, Arc::new(Metrics::new(SystemClock.now()))).await
}

/// Listens on `address`. A killed server of the same store may hold the address for a while; then waits as
/// long as for the store.
async fn listen_at(config: &Config, address: SocketAddr) -> Result<TcpListener, ServerError> {
    let deadline = Instant::now() + store::options(config).lock_wait;
    let mut bound = TcpListener::bind(address).await;
    if is_in_use(&bound) && config.store.folder().is_some_and(is_held_by_ended_process) {
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

/// Opens the store and puts everything around it, while the listener answers that it is being opened. Returns `None`, with the
/// listener closed, if `shutdown` resolves first.
async fn open_serving(
    config: &Config,
    listener: TcpListener,
    tls: Option<&Tls>,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<(TcpListener, Local)>, ServerError> {
    let (report, health) = watch::channel(store::initial_health(config));
    let mut opening = Box::pin(async {
        let (pool, metrics) = (CpuPool::default(), Arc::new(Metrics::new(SystemClock.now())));
        let store = store::open(config, pool.clone(), &metrics, report).await?;
        assemble(config, store, pool, metrics).await
    });
    let health = Arc::new(move || health.borrow().clone());
    let mut opened = None;
    let waiting = async {
        tokio::select! {
            local = &mut opening => opened = Some(local),
            () = shutdown => {}
        }
    };
    serve(&listener, starting(config.http.clone(), health), &config.http, tls, waiting).await;
    let Some(opened) = opened else {
        drop(listener);
        // Opening a data directory cannot be cancelled: it is completed, so that the store is closed in a consistent state.
        if !config.store.is_database() {
            opening.await?.close().await?;
        }
        return Ok(None);
    };
    Ok(Some((listener, opened?)))
}

/// Puts everything around an open store. Tries again if it cannot answer: its verification may find the index damaged just
/// after it was opened, and a database may go away.
async fn assemble(
    config: &Config,
    store: Arc<dyn Store>,
    pool: CpuPool,
    metrics: Arc<Metrics>,
) -> Result<Local, ServerError> {
    loop {
        match try_assemble(config, &store, &pool, &metrics).await {
            Err(ServerError::Store(StoreError::Unavailable(_))) if !store::is_stopped(&*store) => {
                sleep(store::POLL).await;
            }
            assembled => return assembled,
        }
    }
}

async fn try_assemble(
    config: &Config,
    store: &Arc<dyn Store>,
    pool: &CpuPool,
    metrics: &Arc<Metrics>,
) -> Result<Local, ServerError> {
    let clock = Arc::new(SystemClock);
    let key = operator_key::find_or_create(&**store, config, &*clock).await?;
    let operator = match key {
        Some(_) => None,
        None => oldest_workspace(&**store).await?.map(ApiKey::local_operator),
    };
    let random = Arc::new(SystemRandomness);
    let deliveries = deliveries::new_service(config, store, &clock).await?;
    let deliveries = Arc::new(deliveries.with_metrics(Arc::clone(metrics)));
    let app = App::new(Arc::clone(store), pool.clone(), clock, random, config.content, deliveries);
    let app = Arc::new(app);
    let api = router(Arc::clone(&app), config.http.clone());
    Ok(Local { api, key, operator, app })
}
