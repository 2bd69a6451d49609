//! Requests and response bodies that report their progress to their connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};

use crate::http::server::connection_state::Connection;

/// Maximum size of the pieces in which hyper takes a body over HTTP/2. It asks for the next one once the client has
/// allowed it to send the previous one.
pub(crate) const CHUNK: usize = 16 << 10;

/// A request in progress, until hyper has taken its response.
pub(crate) struct TrackedRequest {
    connection: Arc<Connection>,
    /// Whether hyper has the response to send over HTTP/2.
    is_sending: bool,
    /// Whether hyper has taken all of the response.
    is_complete: bool,
}

impl TrackedRequest {
    /// Records that the head of a request is complete. Returns false with it if the connection was evicted before.
    pub(crate) fn begin(connection: Arc<Connection>) -> (Self, bool) {
        let is_accepted = connection.begin_request();
        (Self { connection, is_sending: false, is_complete: false }, is_accepted)
    }

    /// Converts the request's body to one that reports while it is awaited.
    pub(crate) fn track_received(&self, body: Incoming) -> Body {
        Body::new(ReceivedBody { body, connection: Arc::clone(&self.connection), is_awaited: false })
    }

    /// Converts the response's body to one that reports its progress.
    pub(crate) fn track_sent(mut self, body: Body, is_http2: bool) -> TrackedBody {
        if is_http2 {
            self.connection.begin_sending();
            self.is_sending = true;
        }
        TrackedBody { body, request: self, pending: Bytes::new(), taken: 0 }
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        self.connection.end_request(self.is_sending, self.is_complete);
    }
}

/// A request body that is awaited from the first time that the handler asks for more than has arrived.
struct ReceivedBody {
    body: Incoming,
    connection: Arc<Connection>,
    is_awaited: bool,
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        if self.is_awaited {
            self.connection.end_body();
        }
    }
}

impl HttpBody for ReceivedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) if self.is_awaited => {
                self.connection.on_body(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Pending if !self.is_awaited => {
                self.is_awaited = true;
                self.connection.begin_body();
            }
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
        self.request.connection.on_sent(std::mem::take(&mut self.taken));
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
        match self.request.is_sending {
            true => self.poll_chunk(context),
            false => Pin::new(&mut self.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pending.is_empty() && self.body.is_end_stream()
    }

    /// Returns the size before the first piece is taken, for `Content-Length`.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
