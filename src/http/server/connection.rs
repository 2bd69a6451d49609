//! One connection: hyper speaks HTTP on it, and its deadlines are kept.

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
use crate::http::server::accept_loop::Answering;
use crate::http::server::connection_table::{Connection, ConnectionSlot};
use crate::http::server::deadlines::{ConnectionDeadlines, Phase, TimedStream};
use crate::http::server::refusal::{connections_exhausted, head_timeout};
use crate::http::wire::state::Peer;

/// Bytes that hyper may hold of one connection, if our own limits are not higher.
const BUFFER: usize = 128 << 10;

/// Header lines that hyper takes by default; setting any number makes each request slower.
const HEADERS: usize = 100;

/// How long to let the client read the last answer, and to throw away what it still sends: closing while bytes
/// are unread would take the answer from it.
const LINGER: Duration = Duration::from_secs(2);

/// Serves `stream` until either side closes, or the table of connections wants its `slot` back.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    answering: impl Answering,
    limits: Arc<HttpLimits>,
) {
    // Without this, the second of two small writes waits for the client to acknowledge the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let connection = &slot.connection;
    let Some(stream) = exchange(stream, peer, connection, answering, &limits).await else { return };
    tokio::select! {
        biased;
        () = connection.close_requested() => {}
        () = linger(stream) => {}
    }
}

/// Answers requests until no more are to come; returns the stream if the client may still be reading.
async fn exchange(
    stream: TcpStream,
    peer: SocketAddr,
    connection: &Arc<Connection>,
    answering: impl Answering,
    limits: &HttpLimits,
) -> Option<TcpStream> {
    let deadlines = &connection.deadlines;
    let shared = Arc::clone(connection);
    let service = service_fn(move |request| answer(request, peer, answering.clone(), Arc::clone(&shared)));
    let stream = TokioIo::new(TimedStream::new(stream, Arc::clone(deadlines)));
    let mut http = hyper(limits).serve_connection(stream, service);
    let mut overdue = pin!(deadlines.overdue());
    loop {
        tokio::select! {
            biased;
            _ = &mut http => break,
            phase = &mut overdue => return give_up(phase, http.into_parts().io.into_inner().into_inner()),
            () = connection.close_requested() => {
                // Without a request under way nobody waits, and a request sent now is as late as a new connection.
                if deadlines.is_evicted() || !deadlines.is_answering() {
                    let stream = http.into_parts().io.into_inner().into_inner();
                    if deadlines.is_answering() {
                        // What the client did not read is thrown away, or the system would keep it for minutes.
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

/// hyper, whose own limits lie above ours, so that it is ours that answer, with a problem document.
fn hyper(limits: &HttpLimits) -> Builder {
    let mut builder = Builder::new();
    // Some clients close their side as soon as the request is sent, and still wait for the answer.
    builder.half_close(true);
    builder.max_buf_size(BUFFER.max(2 * (limits.max_head + limits.max_uri)));
    if limits.max_headers >= HEADERS {
        builder.max_headers(limits.max_headers + HEADERS);
    }
    builder
}

/// Hands one request on, and notes when it begins and when its answer is with hyper.
async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    mut answering: impl Answering,
    connection: Arc<Connection>,
) -> Result<axum::http::Response<AnswerBody>, Infallible> {
    let is_evicted = !connection.deadlines.begin_request();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer.ip()));
    // hyper drops a `Content-Length` beside it without a word. Whoever counted that length before us sees another
    // request where the chunks end, so there must be none (RFC 9112 §6.1).
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_overload = is_evicted || connection.is_health_only();
    let mut response = if is_overload && !is_health_check(&request) {
        connections_exhausted()
    } else {
        answering.call(request).await?
    };
    if is_overload || is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| AnswerBody { body, deadlines: Arc::clone(&connection.deadlines) }))
}

fn is_health_check(request: &Request) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz")
}

/// The body of an answer; hyper drops it once it has taken all of it.
struct AnswerBody {
    body: Body,
    deadlines: Arc<ConnectionDeadlines>,
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.deadlines.answer_ended();
    }
}

impl HttpBody for AnswerBody {
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

/// Ends a connection whose client is late in `phase`. Returns the stream if the client was answered why.
fn give_up(phase: Phase, stream: TcpStream) -> Option<TcpStream> {
    match phase {
        Phase::Head => {
            // What does not fit into the system's buffer at once is not worth waiting for.
            stream.try_write(&head_timeout()).ok();
            Some(stream)
        }
        // What the client did not read is thrown away, or the system would keep it for minutes.
        Phase::Handling | Phase::Sending => {
            stream.set_zero_linger().ok();
            None
        }
        Phase::New | Phase::Idle => None,
    }
}

/// Reads until the client closes too, for a little while.
async fn linger(mut stream: TcpStream) {
    let discard = async {
        stream.shutdown().await.ok();
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    };
    timeout(LINGER, discard).await.ok();
}
