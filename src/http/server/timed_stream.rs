//! The stream that hyper reads and writes: it reports progress to its connection, and counts frames of HTTP/2.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::has_budget_remaining;

use crate::http::server::connection_state::Connection;

/// A stream that its connection keeps a reference to: hyper does not return it.
pub(crate) struct TimedStream<S> {
    stream: Arc<Mutex<S>>,
    connection: Arc<Connection>,
    /// `None` over HTTP/1.1.
    frames: Option<FrameCounter>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(stream: Arc<Mutex<S>>, connection: Arc<Connection>, is_http2: bool) -> Self {
        Self { stream, connection, frames: is_http2.then(FrameCounter::default) }
    }

    fn lock(&self) -> MutexGuard<'_, S> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a write over HTTP/1.1. Over HTTP/2 a socket that takes bytes does not show that responses are received.
    fn report<T>(&self, written: &Poll<io::Result<T>>, on_success: impl FnOnce(&Connection, &T)) {
        match written {
            _ if self.frames.is_some() => {}
            Poll::Ready(Ok(done)) => on_success(&self.connection, done),
            // Otherwise tokio only wants other tasks to run.
            Poll::Pending if has_budget_remaining() => self.connection.on_blocked(),
            Poll::Pending | Poll::Ready(Err(_)) => {}
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut *self.lock()).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            let received = &buffer.filled()[before..];
            let frames = self.frames.as_mut().map(|frames| frames.count(received));
            if !self.connection.on_received(received.len(), frames) {
                return Poll::Ready(Err(io::Error::other("too many frames without requests")));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.lock()).poll_write(context, bytes);
        self.report(&written, |connection, bytes| connection.on_sent(*bytes));
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS holds back bytes that its socket has not taken.
        let flushed = Pin::new(&mut *self.lock()).poll_flush(context);
        self.report(&flushed, |connection, ()| connection.on_flushed());
        flushed
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
        let written = Pin::new(&mut *self.lock()).poll_write_vectored(context, slices);
        self.report(&written, |connection, bytes| connection.on_sent(*bytes));
        written
    }
}

/// Size of the head of a frame (RFC 9113 §4.1), and of what precedes the first frame (§3.4).
const FRAME_HEAD: usize = 9;
const PREFACE: usize = 24;

/// Types of the frames of requests and bodies (RFC 9113 §6.1, §6.2).
const DATA: u8 = 0;
const HEADERS: u8 = 1;

/// Counts frames in the bytes of a client.
struct FrameCounter {
    /// The head of the current frame, as far as it was received.
    head: Vec<u8>,
    /// Bytes until the next frame.
    rest: usize,
}

impl Default for FrameCounter {
    fn default() -> Self {
        Self { head: Vec::with_capacity(FRAME_HEAD), rest: PREFACE }
    }
}

impl FrameCounter {
    /// Returns how many frames begin in `bytes` that carry neither a request nor a body.
    fn count(&mut self, mut bytes: &[u8]) -> u32 {
        let mut count = 0;
        loop {
            let (skipped, rest) = bytes.split_at(self.rest.min(bytes.len()));
            self.rest -= skipped.len();
            let (head, rest) = rest.split_at((FRAME_HEAD - self.head.len()).min(rest.len()));
            self.head.extend_from_slice(head);
            let &[a, b, c, kind, _, _, _, _, _] = self.head.as_slice() else { return count };
            count += u32::from(!matches!(kind, DATA | HEADERS));
            self.rest = u32::from_be_bytes([0, a, b, c]) as usize;
            self.head.clear();
            bytes = rest;
        }
    }
}
