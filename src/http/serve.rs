//! The accept loop: so many connections at once, each with its time, and an orderly end.
//!
//! Serves any service: `benches/` measures it with another one.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower::Service;

use super::connection::attend;
use crate::config::HttpLimits;

/// How long requests under way may take to finish once the server is told to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// How long to wait after the system would give no connection, for instance for want of file descriptors.
const BACK_OFF: Duration = Duration::from_millis(100);

/// What the connections are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Serving,
    /// Finish the request under way and close.
    Draining,
    /// Close at once.
    Over,
}

/// What answers requests: a router, or routes [within a frame](super::Framed).
pub trait Answering:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> Answering for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

/// Serves `service` on `listener` until `shutdown` is over; then accepts no more, lets requests under way finish for
/// at most 10 seconds, and returns.
///
/// A listener that is given away is closed before those are waited for: whoever comes then is turned away rather than
/// left waiting. One that is lent stays open for whoever serves on it next.
pub async fn serve(
    listener: impl Borrow<TcpListener>,
    service: impl Answering,
    limits: &HttpLimits,
    shutdown: impl Future<Output = ()>,
) {
    let seats = Arc::new(Semaphore::new(limits.max_connections));
    let (stage, watched) = watch::channel(Stage::Serving);
    let limits = Arc::new(limits.clone());
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (seat, stream, peer) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(listener.borrow(), &seats) => accepted,
        };
        let attending = attend(stream, peer, service.clone(), Arc::clone(&limits), watched.clone());
        tokio::spawn(async move {
            attending.await;
            drop(seat);
        });
    }
    drop(listener);
    drain(&stage, &seats, limits.max_connections).await;
}

/// The next connection. Takes its seat first: while all are taken, new connections wait in the system's queue.
async fn accept(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
) -> (OwnedSemaphorePermit, TcpStream, SocketAddr) {
    let seat = Arc::clone(seats).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (seat, stream, peer),
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                sleep(BACK_OFF).await;
            }
        }
    }
}

/// Whether the connection that was to be accepted failed, and the next one may be fine.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Waits until every seat is free again; those that are not in time are taken away.
async fn drain(stage: &watch::Sender<Stage>, seats: &Semaphore, count: usize) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    stage.send_replace(Stage::Draining);
    if timeout(DRAIN, seats.acquire_many(count)).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
        stage.send_replace(Stage::Over);
        // A connection that is told to close does so when it is next looked at.
        let _all = seats.acquire_many(count).await;
    }
}
