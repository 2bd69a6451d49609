//! Serves one connection: hyper handles HTTP/1.1, this module the deadlines and the close.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
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
use crate::http::wire::state::Peer;

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
        () = connection.close_requested() => {}
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
    let stream = TokioIo::new(TimedStream::new(stream, Arc::clone(deadlines)));
    let mut http = http1_builder(limits).serve_connection(stream, service);
    let mut overdue = pin!(deadlines.overdue());
    loop {
        tokio::select! {
            biased;
            _ = &mut http => break,
            phase = &mut overdue => return close_overdue(phase, http.into_parts().io.into_inner().into_inner()),
            () = connection.close_requested() => {
                // Without a request in progress nobody waits, and a request sent now is as late as a new connection.
                if deadlines.is_evicted() || !deadlines.is_responding() {
                    let stream = http.into_parts().io.into_inner().into_inner();
                    if deadlines.is_responding() {
                        // Discards what the client did not read; the system would keep it for minutes.
                        stream.set_zero_linger().ok();
                    }
                    return None;
                }
                Pin::new(&mut http).graceful_shutdown();
            }
        }
    }
    (!deadlines.has_client_ended()).then(|| http.into_parts().io.into_inner().into_inner())
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
) -> Result<axum::http::Response<TimedBody>, Infallible> {
    let is_evicted = !connection.deadlines.begin_request();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer.ip()));
    // hyper silently drops a `Content-Length` beside `Transfer-Encoding`. A proxy that used that length sees another
    // request where the chunks end, so the connection must not be reused (RFC 9112 §6.1).
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_overload = is_evicted || connection.is_health_only();
    let mut response = if is_overload && !is_health_check(&request) {
        overload_response()
    } else {
        service.call(request).await?
    };
    if is_overload || is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| TimedBody { body, deadlines: Arc::clone(&connection.deadlines) }))
}

fn is_health_check(request: &Request) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz")
}

/// A response body that records when it is dropped, which hyper does once it has taken all of it.
struct TimedBody {
    body: Body,
    deadlines: Arc<ConnectionDeadlines>,
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        self.deadlines.response_ended();
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Ends a connection whose client missed the deadline of `phase`. Returns the stream if a response was sent.
fn close_overdue(phase: Phase, stream: TcpStream) -> Option<TcpStream> {
    match phase {
        Phase::Head => {
            // Whatever exceeds the socket buffer is not worth waiting for.
            stream.try_write(&head_timeout()).ok();
            Some(stream)
        }
        // Discards what the client did not read; the system would keep it for minutes.
        Phase::Handling | Phase::Sending => {
            stream.set_zero_linger().ok();
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
