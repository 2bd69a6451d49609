//! Serves one connection: hyper handles HTTP, this module the deadlines and the close.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::either::Either;

use crate::config::HttpSettings;
use crate::http::server::accept_loop::RequestService;
use crate::http::server::connection_state::{Connection, Ending};
use crate::http::server::connection_table::ConnectionSlot;
use crate::http::server::refusal::{head_timeout, https_expected, require_https};
use crate::http::server::timed_stream::TimedStream;
use crate::http::server::tls::{self, Stream};
use crate::http::server::tracked_body::{CHUNK, TrackedBody, TrackedRequest};
use crate::http::wire::state::{ClientAddress, HealthChecksOnly};

/// Minimum size of hyper's read buffer for one connection, in bytes; higher limits enlarge it.
const MIN_BUFFER: usize = 128 << 10;

/// Header lines that hyper accepts by default; setting any number makes each request slower.
const HYPER_MAX_HEADERS: usize = 100;

/// Maximum number of requests in progress on one HTTP/2 connection.
const MAX_STREAMS: u32 = 32;

/// Bytes of a request body that an HTTP/2 client may send before they are read.
const STREAM_WINDOW: u32 = 64 << 10;

/// Bytes of all request bodies of a connection that an HTTP/2 client may send before they are read.
const CONNECTION_WINDOW: u32 = 128 << 10;

/// Time for the client to read the last response while its input is discarded: closing a socket with unread bytes resets
/// the connection, and the response would be lost.
const LINGER: Duration = Duration::from_secs(2);

/// Maximum input that is discarded then, in bytes.
const MAX_DISCARDED: u64 = 16 << 20;

/// Serves HTTP/1.1, or with `tls` HTTPS and HTTP/2, until either side closes, or the connection table reclaims the slot. The
/// TLS handshake is part of the time to the first byte.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    slot: ConnectionSlot,
    service: impl RequestService,
    tls: Option<Arc<ServerConfig>>,
) {
    // Otherwise, the second of two small writes waits for the client to acknowledge the first.
    stream.set_nodelay(true).ok();
    let Some(config) = tls else { return serve_requests(Either::Left(stream), slot, service).await };
    let connection = &slot.connection;
    let accepted = tokio::select! {
        biased;
        accepted = tls::accept(stream, config) => accepted,
        _ending = connection.overdue() => return,
        () = connection.close.notified() => return,
    };
    match accepted {
        Ok(stream @ Either::Right(_)) => serve_requests(stream, slot, service).await,
        Ok(stream) => close(stream, https_expected(&connection.settings), connection).await,
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

/// Serves requests until the connection ends, and closes it.
async fn serve_requests(stream: Stream, slot: ConnectionSlot, service: impl RequestService) {
    let (connection, address) = (&slot.connection, slot.address);
    let (is_tls, is_http2) = match &stream {
        Either::Left(_) => (false, false),
        Either::Right(stream) => (true, tls::is_http2(stream)),
    };
    let stream = Arc::new(Mutex::new(stream));
    let timed = TimedStream::new(Arc::clone(&stream), Arc::clone(connection), is_http2);
    let shared = Arc::clone(connection);
    let service = service_fn(move |request| {
        handle_request(request, address, is_tls, service.clone(), Arc::clone(&shared))
    });
    let builder = http_builder(&connection.settings, is_http2);
    let mut http = Box::pin(builder.serve_connection(TokioIo::new(timed), service));
    let mut overdue = pin!(connection.overdue());
    let mut rest = Vec::new();
    let ending = loop {
        tokio::select! {
            biased;
            _ended = &mut http => break Ending::Complete,
            ending = &mut overdue => break ending,
            () = connection.close.notified() => match connection.is_busy() {
                true if connection.is_evicted() => break Ending::Unread,
                true => http.as_mut().graceful_shutdown(),
                // Nobody waits, and a request sent now is as late as a new connection.
                false => break Ending::Idle,
            },
        }
    };
    match ending {
        Ending::Complete | Ending::Unread => {}
        // Over HTTP/2, the response would belong to no stream.
        Ending::HalfHead if !is_http2 => rest = head_timeout(&connection.settings, is_tls),
        Ending::HalfHead | Ending::Idle => {
            // hyper writes its farewell, as far as the socket takes it.
            http.as_mut().graceful_shutdown();
            poll_fn(|context| Poll::Ready(http.as_mut().poll(context).is_ready())).await;
            return;
        }
    }
    drop(http);
    let stream = Arc::into_inner(stream).expect("hyper's reference was dropped before");
    let stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (ending, &stream) {
        // What the client did not read is discarded; the system would keep it for minutes.
        (Ending::Unread, Either::Left(stream)) => drop(stream.set_zero_linger()),
        (Ending::Unread, Either::Right(stream)) => drop(stream.get_ref().0.set_zero_linger()),
        _ => close(stream, rest, connection).await,
    }
}

/// Returns hyper's builder for one version of HTTP. Its limits on heads are above ours, so that ours are hit first and return
/// a problem document. It limits resets of HTTP/2 requests not yet begun by itself (CVE-2023-44487).
fn http_builder(settings: &HttpSettings, is_http2: bool) -> Builder<TokioExecutor> {
    let (mut builder, max_head) =
        (Builder::new(TokioExecutor::new()), 2 * (settings.max_head + settings.max_uri));
    if is_http2 {
        builder
            .http2()
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(CHUNK)
            .max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX));
        return builder.http2_only();
    }
    // Some clients close their side as soon as the request is sent, and still wait for the response.
    builder.http1().half_close(true).max_buf_size(MIN_BUFFER.max(max_head));
    if settings.max_headers >= HYPER_MAX_HEADERS {
        builder.http1().max_headers(settings.max_headers + HYPER_MAX_HEADERS);
    }
    builder.http1_only()
}

/// Passes one request to `service`, and records when it begins and when hyper has taken its response.
async fn handle_request(
    request: Request<Incoming>,
    address: IpAddr,
    is_tls: bool,
    mut service: impl RequestService,
    connection: Arc<Connection>,
) -> Result<Response<TrackedBody>, Infallible> {
    let is_http2 = request.version() == Version::HTTP_2;
    let (tracked, is_accepted) = TrackedRequest::begin(Arc::clone(&connection));
    let mut request = request.map(|body| tracked.track_received(body));
    request.extensions_mut().insert(ClientAddress(address));
    // hyper silently drops a `Content-Length` beside `Transfer-Encoding`. A proxy that used that length sees another
    // request where the chunks end, so the connection must not be reused (RFC 9112 §6.1).
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_overload = !is_accepted || connection.is_health_only();
    if is_overload {
        request.extensions_mut().insert(HealthChecksOnly);
    }
    let mut response = service.call(request).await?;
    if is_overload && is_http2 {
        connection.close.notify_one();
    } else if is_overload || is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if is_tls {
        require_https(response.headers_mut());
    }
    Ok(response.map(|body| tracked.track_sent(body, is_http2)))
}

/// Sends `rest`, closes the write side and discards input until the client closes too, for at most [`LINGER`] and
/// [`MAX_DISCARDED`], or until the connection is evicted.
async fn close(mut stream: Stream, rest: Vec<u8>, connection: &Connection) {
    let discard = async {
        stream.write_all(&rest).await.ok();
        stream.shutdown().await.ok();
        copy(&mut stream.take(MAX_DISCARDED), &mut sink()).await.ok();
    };
    tokio::select! {
        biased;
        () = connection.close.notified() => {}
        _elapsed = timeout(LINGER, discard) => {}
    }
}
