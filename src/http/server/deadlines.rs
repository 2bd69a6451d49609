//! Deadlines of one connection: for its first byte, the rest of a head, the next request, and for reading a response.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::config::HttpLimits;

/// Minimum rate at which a client must read a response, in bytes per second.
const MIN_READ_RATE: u64 = 16 << 10;

/// Time a client may read nothing before the minimum rate applies.
const READ_GRACE: Duration = Duration::from_secs(5);

/// Maximum pause a client can earn by reading faster than the minimum rate.
const MAX_READ_CREDIT: Duration = Duration::from_secs(60);

/// Interval at which a connection without a deadline is checked again.
const RECHECK: Duration = Duration::from_secs(60);

/// Sentinel for a time that is not set.
const NEVER: u64 = u64::MAX;

/// Sentinel in `idle_since` for a connection that was evicted.
const EVICTED: u64 = u64::MAX - 1;

/// Phase of a connection in the request/response cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No byte received yet.
    New = 0,
    /// Part of a request head received.
    Head = 1,
    /// A request is being handled. Reading its body has a deadline of its own.
    Handling = 2,
    /// hyper has the whole response, the socket not yet.
    Sending = 3,
    /// Waiting for the next request. If its first bytes came before the response was sent, hyper has buffered them and they
    /// go unnoticed here; a client gains no more by that than by sending nothing.
    Idle = 4,
}

/// The phase of one connection and its current deadline. Only the connection's own task writes, so relaxed ordering
/// suffices; but the connection table may evict an idle connection.
pub(crate) struct ConnectionDeadlines {
    limits: Arc<HttpLimits>,
    /// Zero of the times below, which are in microseconds.
    epoch: Instant,
    phase: AtomicU8,
    deadline: AtomicU64,
    idle_since: AtomicU64,
    client_ended: AtomicBool,
}

impl ConnectionDeadlines {
    /// Returns the deadlines of a connection that opens now. Times of connections with the same `epoch` are comparable.
    pub(crate) fn new(limits: Arc<HttpLimits>, epoch: Instant) -> Self {
        let deadlines = Self {
            limits,
            epoch,
            phase: AtomicU8::new(Phase::New as u8),
            deadline: AtomicU64::new(NEVER),
            idle_since: AtomicU64::new(NEVER),
            client_ended: AtomicBool::new(false),
        };
        deadlines.start_waiting(Phase::New, deadlines.limits.first_byte_timeout);
        deadlines
    }

    /// Records that a request head is complete. Returns false if the connection was evicted before.
    pub(crate) fn begin_request(&self) -> bool {
        self.deadline.store(NEVER, Ordering::Relaxed);
        self.set_phase(Phase::Handling);
        let idle_since = self.idle_since.load(Ordering::Relaxed);
        idle_since != EVICTED && self.replace_idle_since(idle_since, NEVER)
    }

    /// Evicts the connection if it is still idle since `idle_since`; returns whether it was.
    pub(crate) fn evict(&self, idle_since: u64) -> bool {
        self.replace_idle_since(idle_since, EVICTED)
    }

    fn replace_idle_since(&self, old: u64, new: u64) -> bool {
        self.idle_since.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Records that hyper has taken the whole response.
    pub(crate) fn response_ended(&self) {
        self.set_phase(Phase::Sending);
    }

    /// Returns when the server began to wait for the client to send a request or read a response, in microseconds from the
    /// epoch; `None` while a request is handled.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Relaxed)).filter(|since| *since < EVICTED)
    }

    /// Whether the connection was evicted for another.
    pub(crate) fn is_evicted(&self) -> bool {
        self.idle_since.load(Ordering::Relaxed) == EVICTED
    }

    /// Whether the client has closed its side.
    pub(crate) fn has_client_ended(&self) -> bool {
        self.client_ended.load(Ordering::Relaxed)
    }

    /// Resolves when a deadline passes, with the phase it belongs to.
    pub(crate) async fn overdue(&self) -> Phase {
        let mut timer = pin!(sleep_until(Instant::now() + RECHECK));
        std::future::poll_fn(|context| {
            loop {
                // The deadline nearly always moves later, so the timer is reset only when it fires or the deadline is earlier.
                let deadline = self.deadline();
                if let Some(deadline) = deadline.filter(|deadline| *deadline < timer.deadline()) {
                    timer.as_mut().reset(deadline);
                }
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return Poll::Ready(self.phase());
                }
                timer.as_mut().reset(deadline.unwrap_or_else(|| Instant::now() + RECHECK));
            }
        })
        .await
    }

    fn on_received(&self, bytes: usize) {
        match self.phase() {
            _ if bytes == 0 => self.client_ended.store(true, Ordering::Relaxed),
            Phase::New | Phase::Idle => {
                self.deadline.store(self.now() + micros(self.limits.head_timeout), Ordering::Relaxed);
                self.set_phase(Phase::Head);
            }
            // Bytes received while the client still reads a response do not shorten the deadline for reading it.
            Phase::Head | Phase::Handling | Phase::Sending => {}
        }
    }

    /// Records that the socket took `bytes`. Only bytes that had to wait for the client show how fast it reads.
    fn on_sent(&self, bytes: usize) {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if self.is_responding() && deadline != NEVER {
            let earned = (bytes as u64).saturating_mul(1_000_000) / MIN_READ_RATE;
            let latest = self.now() + micros(MAX_READ_CREDIT);
            self.deadline.store((deadline + earned).min(latest), Ordering::Relaxed);
        }
    }

    /// Records that the socket is full until the client reads.
    fn on_blocked(&self) {
        if self.is_responding() && self.deadline.load(Ordering::Relaxed) == NEVER {
            self.deadline.store(self.now() + micros(READ_GRACE), Ordering::Relaxed);
        }
        if self.phase() == Phase::Sending {
            self.replace_idle_since(NEVER, self.now());
        }
    }

    /// Records that the socket has taken everything hyper had to send.
    fn on_flushed(&self) {
        match self.phase() {
            Phase::Handling => self.deadline.store(NEVER, Ordering::Relaxed),
            Phase::Sending => self.start_waiting(Phase::Idle, self.limits.idle_timeout),
            Phase::New | Phase::Head | Phase::Idle => {}
        }
    }

    /// Starts waiting for the client for at most `time`, with no request in progress.
    fn start_waiting(&self, phase: Phase, time: Duration) {
        let now = self.now();
        let idle_since = self.idle_since.load(Ordering::Relaxed);
        if idle_since != EVICTED {
            self.replace_idle_since(idle_since, now);
        }
        self.deadline.store(now.saturating_add(micros(time)), Ordering::Relaxed);
        self.set_phase(phase);
    }

    pub(crate) fn is_responding(&self) -> bool {
        matches!(self.phase(), Phase::Handling | Phase::Sending)
    }

    fn deadline(&self) -> Option<Instant> {
        match self.deadline.load(Ordering::Relaxed) {
            NEVER => None,
            micros => Some(self.epoch + Duration::from_micros(micros)),
        }
    }

    fn now(&self) -> u64 {
        micros(self.epoch.elapsed())
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::New,
            1 => Phase::Head,
            2 => Phase::Handling,
            3 => Phase::Sending,
            _ => Phase::Idle,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A stream that reports bytes read and written to its [`ConnectionDeadlines`].
pub(crate) struct TimedStream {
    stream: TcpStream,
    deadlines: Arc<ConnectionDeadlines>,
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream, deadlines: Arc<ConnectionDeadlines>) -> Self {
        Self { stream, deadlines }
    }

    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }

    fn report(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => self.deadlines.on_sent(bytes),
            Poll::Pending => self.deadlines.on_blocked(),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            self.deadlines.on_received(buffer.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.deadlines.on_flushed();
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report(written)
    }
}
