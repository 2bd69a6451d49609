//! HTTP/2 (RFC 9113): limits that bound the memory of a connection, and its stream, which hyper does not return.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::http::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::config::HttpSettings;
use crate::http::server::connection::{HttpConnection, Socket};
use crate::http::server::deadlines::ConnectionDeadlines;
use crate::http::server::tracked_body::{CHUNK, TrackedBody};

/// Maximum number of requests in progress on one connection.
const MAX_STREAMS: u32 = 32;

/// Bytes of a request body that a client may send before they are read.
const STREAM_WINDOW: u32 = 64 << 10;

/// Bytes of all request bodies of a connection that a client may send before they are read.
const CONNECTION_WINDOW: u32 = 128 << 10;

/// A connection that speaks HTTP/2.
pub(crate) struct Http2Connection<S, V>
where
    V: Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible>,
{
    http: http2::Connection<TokioIo<SharedStream<S>>, V, TokioExecutor>,
    stream: SharedStream<S>,
}

impl<S: Socket, V> Http2Connection<S, V>
where
    V: Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible>,
    V::Future: Send + 'static,
{
    pub(crate) fn new(
        stream: S,
        deadlines: Arc<ConnectionDeadlines>,
        service: V,
        settings: &HttpSettings,
    ) -> Self {
        let stream = SharedStream { stream: Arc::new(Mutex::new(stream)), deadlines };
        let http = builder(settings).serve_connection(TokioIo::new(stream.clone()), service);
        Self { http, stream }
    }
}

/// Returns hyper's HTTP/2 builder. Its limits on headers are above ours, so that ours are hit first and return a problem
/// document. It limits resets of requests not yet begun by itself (CVE-2023-44487).
fn builder(settings: &HttpSettings) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let max_headers = 2 * (settings.max_head + settings.max_uri);
    builder.max_concurrent_streams(MAX_STREAMS);
    builder.initial_stream_window_size(STREAM_WINDOW);
    builder.initial_connection_window_size(CONNECTION_WINDOW);
    builder.max_send_buf_size(CHUNK);
    builder.max_header_list_size(u32::try_from(max_headers).unwrap_or(u32::MAX));
    builder
}

impl<S: Socket, V> Future for Http2Connection<S, V>
where
    V: Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible>,
    V::Future: Send + 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.stream.deadlines.set_waker(context.waker());
        Pin::new(&mut self.http).poll(context).map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP/2 connection failed");
            }
        })
    }
}

impl<S: Socket, V> HttpConnection for Http2Connection<S, V>
where
    V: Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible>,
    V::Future: Send + 'static,
{
    type Stream = S;

    /// A response to a head that did not arrive would belong to no stream.
    const CAN_REFUSE_HEAD: bool = false;

    fn end_gracefully(&mut self) {
        Pin::new(&mut self.http).graceful_shutdown();
    }

    fn into_stream(self) -> S {
        drop(self.http);
        let stream = Arc::into_inner(self.stream.stream).expect("hyper's copy was dropped before");
        stream.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that both hyper and its connection have, and that reports received bytes to the deadlines.
struct SharedStream<S> {
    stream: Arc<Mutex<S>>,
    deadlines: Arc<ConnectionDeadlines>,
}

impl<S> Clone for SharedStream<S> {
    fn clone(&self) -> Self {
        Self { stream: Arc::clone(&self.stream), deadlines: Arc::clone(&self.deadlines) }
    }
}

impl<S> SharedStream<S> {
    fn lock(&self) -> MutexGuard<'_, S> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Socket> AsyncRead for SharedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut *self.lock()).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            self.deadlines.on_frames_received(buffer.filled().len() - before);
        }
        read
    }
}

impl<S: Socket> AsyncWrite for SharedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write_vectored(context, slices)
    }
}
