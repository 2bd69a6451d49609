//! The accept loop: limits the number of connections, gives each its deadlines, and shuts down gracefully.
//!
//! Generic over the service: `benches/` measures it with a trivial one.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tower::Service;

use crate::config::{HttpSettings, KEPT_CONNECTIONS};
use crate::http::server::connection::serve_connection;
use crate::http::server::connection_table::ConnectionTable;
use crate::http::server::tls::Tls;

/// Time for requests in progress to finish once the server stops.
const DRAIN: Duration = Duration::from_secs(10);

/// Pause after `accept` fails, for instance because the process is out of file descriptors.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Minimum time between two warnings about failing `accept` calls.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Socket send buffer, in bytes. The system's default maximum of 4 MiB would hide for minutes that a client does not
/// read, and is memory that no other limit counts.
const SEND_BUFFER: usize = 64 << 10;

/// Any service that maps a request to a response and never fails: a router, or an [`HttpService`](crate::http::HttpService).
pub trait RequestService:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
    /// Learns how many connections are open, whenever that changes.
    fn on_connections(&self, _open: usize) {}
}

impl RequestService for Router {}

/// Serves `service` on `listener` until `shutdown` resolves; then stops accepting, lets requests in progress finish for
/// at most 10 seconds, and returns.
///
/// With `tls`, serves HTTPS and HTTP/2, else plain HTTP/1.1.
///
/// An owned listener is closed before the requests in progress finish, so that new clients are refused rather than left
/// waiting. A borrowed one stays open for the next caller.
pub async fn serve(
    listener: impl Borrow<TcpListener>,
    service: impl RequestService,
    settings: &HttpSettings,
    tls: Option<&Tls>,
    shutdown: impl Future<Output = ()>,
) {
    set_socket_send_buffer_size(listener.borrow(), SEND_BUFFER).ok();
    let table = Arc::new(ConnectionTable::new(Arc::new(settings.clone())));
    // Evicted connections take a moment to close.
    let most = settings.max_connections.saturating_add(2 * KEPT_CONNECTIONS);
    let mut connections = JoinSet::new();
    let mut last_warning = None;
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        service.on_connections(connections.len());
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_ended) = connections.join_next() => {}
            (stream, peer) = accept(listener.borrow(), &mut last_warning), if connections.len() < most => {
                if let Some(slot) = table.admit(peer.ip()) {
                    connections.spawn(serve_connection(stream, slot, service.clone(), tls.map(Tls::current)));
                }
            }
        }
    }
    drop(listener);
    table.close_all();
    drain(connections).await;
}

/// Accepts the next connection. While `accept` fails, warns once a minute.
async fn accept(listener: &TcpListener, last_warning: &mut Option<Instant>) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                if last_warning.is_none_or(|last| last.elapsed() >= LOG_INTERVAL) {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    *last_warning = Some(Instant::now());
                }
                sleep(BACK_OFF).await;
            }
        }
    }
}

/// Whether only the connection being accepted failed, so that the next one may succeed.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Waits until all `connections` have ended; aborts those that exceed [`DRAIN`].
async fn drain(mut connections: JoinSet<()>) {
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, all).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
        connections.shutdown().await;
    }
}
