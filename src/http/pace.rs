//! What a connection waits for and until when: for a request's first byte, for the rest of its head, for nothing
//! while it is being answered, and for the next.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::refusal::instead_of;
use crate::config::HttpLimits;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The first byte on a new connection.
    FirstByte = 0,
    /// The rest of a head that has begun.
    Head = 1,
    /// The server itself: reading the body keeps its own time.
    Nothing = 2,
    /// The client to take an answer, or to send the next request. If its first bytes came before that answer was
    /// taken, hyper holds them and tells nobody; a client gains no more by that than by sending nothing.
    Next = 3,
}

/// What one connection waits for. All parts of a connection run in one task, so there is nothing to order.
pub(super) struct Pace {
    limits: Arc<HttpLimits>,
    opened: Instant,
    wait: AtomicU8,
    /// Milliseconds since `opened`.
    deadline: AtomicU64,
    ended: AtomicBool,
    /// Whether a request is there that is not wholly answered.
    owing: AtomicBool,
}

impl Pace {
    pub(super) fn new(limits: Arc<HttpLimits>) -> Self {
        let pace = Self {
            limits,
            opened: Instant::now(),
            wait: AtomicU8::new(Wait::FirstByte as u8),
            deadline: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            owing: AtomicBool::new(false),
        };
        pace.set(Wait::FirstByte, pace.limits.first_byte_timeout);
        pace
    }

    /// A request's head is there.
    pub(super) fn begin(&self) {
        self.owing.store(true, Ordering::Relaxed);
        self.set(Wait::Nothing, self.limits.idle_timeout);
    }

    /// The answer is on its way.
    pub(super) fn answered(&self) {
        self.set(Wait::Next, self.limits.idle_timeout);
    }

    /// When to ask [`overdue`](Self::overdue) again.
    pub(super) fn look_again(&self) -> Instant {
        match self.wait() {
            Wait::Nothing => Instant::now() + self.limits.idle_timeout,
            Wait::FirstByte | Wait::Head | Wait::Next => {
                self.opened + Duration::from_millis(self.deadline.load(Ordering::Relaxed))
            }
        }
    }

    /// What the client did not send, or take, in time.
    pub(super) fn overdue(&self, now: Instant) -> Option<Wait> {
        match self.wait() {
            Wait::Nothing => None,
            wait => (now >= self.look_again()).then_some(wait),
        }
    }

    fn received(&self, bytes: usize) {
        match self.wait() {
            _ if bytes == 0 => self.ended.store(true, Ordering::Relaxed),
            // Bytes that come while the client still takes an answer do not shorten its time for that.
            _ if self.owes() => {}
            Wait::FirstByte | Wait::Next => self.set(Wait::Head, self.limits.head_timeout),
            Wait::Head | Wait::Nothing => {}
        }
    }

    fn sent(&self) {
        if self.wait() == Wait::Next {
            self.answered();
        }
    }

    /// All that was to be written is.
    fn flushed(&self) {
        if self.wait() != Wait::Nothing {
            self.owing.store(false, Ordering::Relaxed);
        }
    }

    /// Whether `bytes` are hyper's own answer to a head that it could not read: one that nobody is owed. The rest of an
    /// answer that was flushed in parts is none: a part begins with its length.
    fn is_bare(&self, bytes: &[u8]) -> bool {
        !self.owes() && bytes.starts_with(b"HTTP/1.1 4")
    }

    /// Whether a request is there that is not wholly answered.
    pub(super) fn owes(&self) -> bool {
        self.owing.load(Ordering::Relaxed)
    }

    fn set(&self, wait: Wait, time: Duration) {
        let deadline = (self.opened.elapsed() + time).as_millis();
        self.deadline.store(u64::try_from(deadline).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.wait.store(wait as u8, Ordering::Relaxed);
    }

    fn wait(&self) -> Wait {
        match self.wait.load(Ordering::Relaxed) {
            0 => Wait::FirstByte,
            1 => Wait::Head,
            2 => Wait::Nothing,
            _ => Wait::Next,
        }
    }
}

/// A stream that tells its [`Pace`] what moves.
pub(super) struct Paced {
    stream: TcpStream,
    pace: Arc<Pace>,
}

impl Paced {
    pub(super) fn new(stream: TcpStream, pace: Arc<Pace>) -> Self {
        Self { stream, pace }
    }

    pub(super) fn inner(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Writes a problem document in place of the `bare` answer. Nothing is written before it, so it fits into the
    /// system's buffer; what does not is not worth waiting for.
    fn refuse(&self, bare: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.stream.try_write(&instead_of(bare)).map(|_| bare.len()))
    }

    /// Whether the client has closed its side.
    pub(super) fn has_ended(&self) -> bool {
        self.pace.ended.load(Ordering::Relaxed)
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            self.pace.received(buffer.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.pace.is_bare(bytes) {
            return self.refuse(bytes);
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.pace.sent();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pace.flushed();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [bare] = slices
            && self.pace.is_bare(bare)
        {
            return self.refuse(bare);
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        if written.is_ready() {
            self.pace.sent();
        }
        written
    }
}
