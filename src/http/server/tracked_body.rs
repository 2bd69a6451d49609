//! Response bodies that report to their connection when hyper has taken them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::http::server::connection_table::Connection;

/// A response body that hyper drops once it has taken all of it.
pub(crate) struct TrackedBody {
    body: Body,
    connection: Arc<Connection>,
}

impl TrackedBody {
    pub(crate) fn new(body: Body, connection: Arc<Connection>) -> Self {
        Self { body, connection }
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.connection.deadlines.response_ended();
    }
}

impl HttpBody for TrackedBody {
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
