//! Serves one connection: hyper handles HTTP, this module the deadlines and the close.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Response, Version};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as HyperService, service_fn};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::config::HttpSettings;
use crate::http::server::accept_loop::RequestService;
use crate::http::server::connection_table::{Connection, ConnectionSlot};
use crate::http::server::deadlines::{Phase, TimedStream};
use crate::http::server::http2::Http2Connection;
use crate::http::server::refusal::{head_timeout, https_expected, require_https};
use crate::http::server::tls::{self, Handshake};
use crate::http::server::tracked_body::{TrackedBody, TrackedRequest};
use crate::http::wire::state::{ClientAddress, HealthChecksOnly};

/// Minimum size of hyper's read buffer for one connection, in bytes; higher limits enlarge it.
const MIN_BUFFER: usize = 128 << 10;

/// Header lines that hyper accepts by default; setting any number makes each request slower.
const HYPER_MAX_HEADERS: usize = 100;

/// Time for the client to read the last response while its input is discarded: closing a socket with unread bytes resets
/// the connection, and the response would be lost.
const LINGER: Duration = Duration::from_secs(2);

/// A client's connection that was just accepted, but for its stream.
pub(crate) struct Client<V> {
    pub(crate) address: IpAddr,
    pub(crate) slot: ConnectionSlot,
    pub(crate) service: V,
    pub(crate) settings: Arc<HttpSettings>,
}

/// Serves plain HTTP/1.1 until either side closes, or the connection table reclaims the slot.
pub(crate) async fn serve_plain(stream: TcpStream, client: Client<impl RequestService>) {
    disable_delay(&stream);
    serve_http1(stream, client).await;
}

/// Serves HTTPS until either side closes, or the connection table reclaims the slot. The TLS handshake is part of the
/// time to the first byte.
pub(crate) async fn serve_tls(
    stream: TcpStream,
    client: Client<impl RequestService>,
    config: Arc<ServerConfig>,
) {
    disable_delay(&stream);
    let connection = Arc::clone(&client.slot.connection);
    let accepted = tokio::select! {
        biased;
        accepted = tls::accept(stream, config) => accepted,
        _phase = connection.deadlines.overdue() => return,
        () = connection.close.notified() => return,
    };
    match accepted {
        Ok(Handshake::Tls(stream)) if tls::is_http2(&stream) => serve_http2(stream, client).await,
        Ok(Handshake::Tls(stream)) => serve_http1(stream, client).await,
        Ok(Handshake::PlainHttp(stream)) => {
            close(stream, https_expected(&connection.settings), &connection).await
        }
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

/// Sends small writes at once. Otherwise, the second of two would wait for the client to acknowledge the first.
fn disable_delay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
}

/// A stream over TCP, with or without TLS.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    const IS_TLS: bool;

    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    const IS_TLS: bool = false;

    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for Box<TlsStream<TcpStream>> {
    const IS_TLS: bool = true;

    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// hyper's side of a connection.
pub(crate) trait HttpConnection: Future + Unpin {
    type Stream: Socket;

    /// Whether a response can be sent to a head that did not arrive in time.
    const CAN_REFUSE_HEAD: bool;

    /// Ends the connection after the requests in progress.
    fn end_gracefully(&mut self);

    fn into_stream(self) -> Self::Stream;
}

impl<S, V> HttpConnection for http1::Connection<TokioIo<TimedStream<S>>, V>
where
    S: Socket,
    V: HyperService<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible>,
{
    type Stream = S;

    const CAN_REFUSE_HEAD: bool = true;

    fn end_gracefully(&mut self) {
        Pin::new(self).graceful_shutdown();
    }

    fn into_stream(self) -> S {
        self.into_parts().io.into_inner().stream
    }
}

async fn serve_http1<S: Socket>(stream: S, client: Client<impl RequestService>) {
    let Client { address, slot, service, settings } = client;
    let connection = &slot.connection;
    let shared = Arc::clone(connection);
    let service = service_fn(move |request| {
        handle_request(request, address, S::IS_TLS, service.clone(), Arc::clone(&shared))
    });
    let stream = TokioIo::new(TimedStream { stream, deadlines: Arc::clone(&connection.deadlines) });
    serve_requests(http1_builder(&settings).serve_connection(stream, service), connection).await;
}

async fn serve_http2<S: Socket>(stream: S, client: Client<impl RequestService>) {
    let Client { address, slot, service, settings } = client;
    let connection = &slot.connection;
    let shared = Arc::clone(connection);
    let service = service_fn(move |request| {
        handle_request(request, address, S::IS_TLS, service.clone(), Arc::clone(&shared))
    });
    let deadlines = Arc::clone(&connection.deadlines);
    serve_requests(Http2Connection::new(stream, deadlines, service, &settings), connection).await;
}

/// Serves requests until the connection ends, and closes it.
async fn serve_requests<H: HttpConnection>(mut http: H, connection: &Connection) {
    let deadlines = &connection.deadlines;
    let mut overdue = pin!(deadlines.overdue());
    loop {
        tokio::select! {
            biased;
            _ = &mut http => break,
            phase = &mut overdue => return close_overdue(phase, http, connection).await,
            () = connection.close.notified() => {
                let state = deadlines.state();
                match state.phase.is_responding() {
                    true if state.is_evicted => return discard_unread(&http.into_stream()),
                    true => http.end_gracefully(),
                    // Nobody waits, and a request sent now is as late as a new connection.
                    false => return close_idle(http).await,
                }
            }
        }
    }
    if !deadlines.state().has_client_ended {
        close(http.into_stream(), Vec::new(), connection).await;
    }
}

/// Returns hyper's HTTP/1.1 builder. Its limits are above ours, so that ours are hit first and return a problem document.
fn http1_builder(settings: &HttpSettings) -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Some clients close their side as soon as the request is sent, and still wait for the response.
    builder.half_close(true);
    builder.max_buf_size(MIN_BUFFER.max(2 * (settings.max_head + settings.max_uri)));
    if settings.max_headers >= HYPER_MAX_HEADERS {
        builder.max_headers(settings.max_headers + HYPER_MAX_HEADERS);
    }
    builder
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
    let (tracked, is_accepted) = TrackedRequest::begin(Arc::clone(&connection), is_http2);
    let mut request = request.map(Body::new);
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
    Ok(response.map(|body| tracked.track(body)))
}

/// Ends a connection whose client missed the deadline of `phase`.
async fn close_overdue<H: HttpConnection>(phase: Phase, http: H, connection: &Connection) {
    match phase {
        Phase::Head if H::CAN_REFUSE_HEAD => {
            let refusal = head_timeout(&connection.settings, H::Stream::IS_TLS);
            close(http.into_stream(), refusal, connection).await
        }
        Phase::Handling | Phase::Sending => discard_unread(&http.into_stream()),
        Phase::New | Phase::Head | Phase::Idle => close_idle(http).await,
    }
}

/// Closes a connection without requests in progress, and without waiting for its client.
async fn close_idle(mut http: impl HttpConnection) {
    http.end_gracefully();
    // hyper writes its farewell, as far as the socket takes it.
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut http).poll(context).is_ready())).await;
}

/// Sends `rest`, closes the write side and discards input until the client closes too, for at most [`LINGER`], or until the
/// connection is evicted.
async fn close(mut stream: impl Socket, rest: Vec<u8>, connection: &Connection) {
    let discard = async {
        stream.write_all(&rest).await.ok();
        stream.shutdown().await.ok();
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await.is_ok_and(|count| count > 0) {}
    };
    tokio::select! {
        biased;
        () = connection.close.notified() => {}
        _elapsed = timeout(LINGER, discard) => {}
    }
}

/// Closes the connection, discarding what the client did not read; the system would keep it for minutes.
fn discard_unread(stream: &impl Socket) {
    stream.tcp().set_zero_linger().ok();
}
