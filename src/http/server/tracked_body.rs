//! Requests and response bodies that report their progress to their connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::http::server::connection_table::Connection;

/// Maximum size of the pieces in which hyper takes a body over HTTP/2. It asks for the next one once the client has
/// allowed it to send the previous one.
pub(crate) const CHUNK: usize = 16 << 10;

/// Requests that the client of an HTTP/2 connection may cancel before it is disconnected (CVE-2023-44487). Each completed
/// request takes one off the count.
const MAX_RESETS: u32 = 100;

/// A request in progress, until hyper has taken its response.
pub(crate) struct TrackedRequest {
    connection: Arc<Connection>,
    is_http2: bool,
    /// Whether hyper has the response.
    is_sending: bool,
    /// Whether hyper has taken all of the response.
    is_complete: bool,
}

impl TrackedRequest {
    /// Records that the head of a request is complete. Returns false with it if the connection was evicted before.
    pub(crate) fn begin(connection: Arc<Connection>, is_http2: bool) -> (Self, bool) {
        let deadlines = &connection.deadlines;
        let is_accepted = if is_http2 { deadlines.begin_stream() } else { deadlines.begin_request() };
        (Self { connection, is_http2, is_sending: false, is_complete: false }, is_accepted)
    }

    /// Converts the response's body to one that reports its progress.
    pub(crate) fn track(mut self, body: Body) -> TrackedBody {
        if self.is_http2 {
            self.connection.deadlines.begin_sending();
            self.is_sending = true;
        }
        TrackedBody { body, request: self, pending: Bytes::new(), taken: 0 }
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        let deadlines = &self.connection.deadlines;
        if !self.is_http2 {
            return deadlines.response_ended();
        }
        let resets = deadlines.end_stream(self.is_sending, self.is_complete);
        if resets > MAX_RESETS && deadlines.close_now() {
            tracing::debug!("a client cancelled too many requests and is disconnected");
            self.connection.close.notify_one();
        }
    }
}

/// A response body that hyper drops once it has taken all of it.
pub(crate) struct TrackedBody {
    body: Body,
    request: TrackedRequest,
    /// The rest of a frame of `body`.
    pending: Bytes,
    /// Size of the piece that hyper has taken last, but may not have been allowed to send.
    taken: usize,
}

impl TrackedBody {
    /// Returns the next piece of at most [`CHUNK`] bytes.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.connection.deadlines.on_sent(std::mem::take(&mut self.taken));
        if self.pending.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.pending = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let chunk = self.pending.split_to(self.pending.len().min(CHUNK));
        self.taken = chunk.len();
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.request.is_complete = self.is_end_stream();
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.request.is_http2 {
            true => self.poll_chunk(context),
            false => Pin::new(&mut self.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pending.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, pending) = (self.body.size_hint(), self.pending.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + pending);
        rest.upper().inspect(|upper| hint.set_upper(upper + pending));
        hint
    }
}
