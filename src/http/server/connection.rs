//! Serves one connection: hyper handles HTTP/1.1, this module the deadlines and the close.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::HttpLimits;
use crate::http::server::accept_loop::RequestService;
use crate::http::server::connection_table::{Connection, ConnectionSlot};
use crate::http::server::deadlines::{ConnectionDeadlines, Phase, TimedStream};
use crate::http::server::refusal::{head_timeout, overload_response};
use crate::http::wire::state::ClientAddress;

/// Minimum size of hyper's read buffer for one connection, in bytes; higher limits enlarge it.
const MIN_BUFFER: usize = 128 << 10;

/// Header lines that hyper accepts by default; setting any number makes each request slower.
const HYPER_MAX_HEADERS: usize = 100;

/// Time for the client to read the last response while its input is discarded: closing a socket with unread bytes resets
/// the connection, and the response would be lost.
const LINGER: Duration = Duration::from_secs(2);

/// Serves `stream` until either side closes, or the connection table reclaims its `slot`.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    service: impl RequestService,
    limits: Arc<HttpLimits>,
) {
    // Without this, the second of two small writes waits for the client to acknowledge the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let connection = &slot.connection;
    let Some(stream) = serve_requests(stream, peer, connection, service, &limits).await else { return };
    tokio::select! {
        biased;
        () = connection.close.notified() => {}
        () = linger(stream) => {}
    }
}

/// Serves requests until the connection ends; returns the stream if the client may still be reading.
async fn serve_requests(
    stream: TcpStream,
    peer: SocketAddr,
    connection: &Arc<Connection>,
    service: impl RequestService,
    limits: &HttpLimits,
) -> Option<TcpStream> {
    let deadlines = &connection.deadlines;
    let shared = Arc::clone(connection);
    let service =
        service_fn(move |request| handle_request(request, peer, service.clone(), Arc::clone(&shared)));
    let stream = TokioIo::new(TimedStream { stream, deadlines: Arc::clone(deadlines) });
    let mut http = http1_builder(limits).serve_connection(stream, service);
    let mut overdue = pin!(deadlines.overdue());
    loop {
        tokio::select! {
            biased;
            _ = &mut http => break,
            phase = &mut overdue => return close_overdue(phase, http.into_parts().io.into_inner().stream, limits),
            () = connection.close.notified() => {
                let state = deadlines.state();
                // Without a request in progress nobody waits, and a request sent now is as late as a new connection.
                if state.is_evicted || !state.phase.is_responding() {
                    if state.phase.is_responding() {
                        discard_unread(&http.into_parts().io.into_inner().stream);
                    }
                    return None;
                }
                Pin::new(&mut http).graceful_shutdown();
            }
        }
    }
    (!deadlines.state().has_client_ended).then(|| http.into_parts().io.into_inner().stream)
}

/// Returns hyper's HTTP/1.1 builder. Its limits are above ours, so that ours are hit first and return a problem document.
fn http1_builder(limits: &HttpLimits) -> Builder {
    let mut builder = Builder::new();
    // Some clients close their side as soon as the request is sent, and still wait for the response.
    builder.half_close(true);
    builder.max_buf_size(MIN_BUFFER.max(2 * (limits.max_head + limits.max_uri)));
    if limits.max_headers >= HYPER_MAX_HEADERS {
        builder.max_headers(limits.max_headers + HYPER_MAX_HEADERS);
    }
    builder
}

/// Passes one request to `service`, and records when it begins and when hyper has taken its response.
async fn handle_request(
    request: Request<Incoming>,
    peer: SocketAddr,
    mut service: impl RequestService,
    connection: Arc<Connection>,
) -> Result<Response<impl HttpBody<Data = Bytes, Error = axum::Error>>, Infallible> {
    let is_evicted = !connection.deadlines.begin_request();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ClientAddress(peer.ip()));
    // hyper silently drops a `Content-Length` beside `Transfer-Encoding`. A proxy that used that length sees another
    // request where the chunks end, so the connection must not be reused (RFC 9112 §6.1).
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_overload = is_evicted || connection.is_health_only();
    let mut response = if is_overload && !is_health_check(&request) {
        overload_response(&request, &connection.limits)
    } else {
        service.call(request).await?
    };
    if is_overload || is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let guard = ResponseGuard(Arc::clone(&connection.deadlines));
    Ok(response.map(|body| {
        body.map_err(move |error| {
            let _until_dropped = &guard;
            error
        })
    }))
}

fn is_health_check(request: &Request) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz")
}

/// Records that hyper has taken the whole response: it then drops the body, and with it this guard.
struct ResponseGuard(Arc<ConnectionDeadlines>);

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        self.0.response_ended();
    }
}

/// Ends a connection whose client missed the deadline of `phase`. Returns the stream if a response was sent.
fn close_overdue(phase: Phase, stream: TcpStream, limits: &HttpLimits) -> Option<TcpStream> {
    match phase {
        Phase::Head => {
            // Whatever exceeds the socket buffer is not worth waiting for.
            stream.try_write(&head_timeout(limits)).ok();
            Some(stream)
        }
        Phase::Handling | Phase::Sending => {
            discard_unread(&stream);
            None
        }
        Phase::New | Phase::Idle => None,
    }
}

/// Closes the write side and discards input until the client closes too, for at most [`LINGER`].
async fn linger(mut stream: TcpStream) {
    let discard = async {
        stream.shutdown().await.ok();
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    };
    timeout(LINGER, discard).await.ok();
}

/// Discards what the client did not read; the system would keep it for minutes.
fn discard_unread(stream: &TcpStream) {
    stream.set_zero_linger().ok();
}
