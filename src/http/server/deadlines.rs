//! When a client has kept a connection waiting for too long: for its first byte, for the rest of a head, for the next
//! request, or by not reading an answer.

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

/// Bytes a second that a client has to read of an answer.
const MIN_READ_RATE: u64 = 16 << 10;

/// How long a client may read nothing before the rate counts.
const READ_GRACE: Duration = Duration::from_secs(5);

/// How long a client may pause after it has read faster than it has to.
const MAX_READ_CREDIT: Duration = Duration::from_secs(60);

/// How long a connection without a deadline is left alone before it is looked at again.
const RECHECK: Duration = Duration::from_secs(60);

/// The value of a time that is not set.
const NEVER: u64 = u64::MAX;

/// The time since a connection is idle that was evicted.
const EVICTED: u64 = u64::MAX - 1;

/// Where a connection is in the exchange of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No byte has come yet.
    New = 0,
    /// A head has begun.
    Head = 1,
    /// A request is being handled. Reading its body keeps its own time.
    Handling = 2,
    /// All of an answer is with hyper, and not yet all with the system.
    Sending = 3,
    /// The next request is waited for. If its first bytes came before the answer was sent, hyper holds them and
    /// nothing here sees them; a client gains no more by that than by sending nothing.
    Idle = 4,
}

/// The phase of one connection and when the client must have moved. Written by the connection's own task alone, so
/// there is nothing to order; but the table of connections may evict one that is idle.
pub(crate) struct ConnectionDeadlines {
    limits: Arc<HttpLimits>,
    /// The zero of all times here, which are in microseconds.
    epoch: Instant,
    phase: AtomicU8,
    deadline: AtomicU64,
    idle_since: AtomicU64,
    client_ended: AtomicBool,
}

impl ConnectionDeadlines {
    /// The deadlines of a connection that opens now; the times of connections with one `epoch` can be compared.
    pub(crate) fn new(limits: Arc<HttpLimits>, epoch: Instant) -> Self {
        let deadlines = Self {
            limits,
            epoch,
            phase: AtomicU8::new(Phase::New as u8),
            deadline: AtomicU64::new(NEVER),
            idle_since: AtomicU64::new(NEVER),
            client_ended: AtomicBool::new(false),
        };
        deadlines.rest(Phase::New, deadlines.limits.first_byte_timeout);
        deadlines
    }

    /// Notes that a request's head is complete. Returns whether the connection was not evicted before.
    pub(crate) fn begin_request(&self) -> bool {
        self.deadline.store(NEVER, Ordering::Relaxed);
        self.set_phase(Phase::Handling);
        let idle_since = self.idle_since.load(Ordering::Relaxed);
        idle_since != EVICTED && self.replace_idle_since(idle_since, NEVER)
    }

    /// Keeps requests from beginning on a connection that is idle since `idle_since`; returns whether it still is.
    pub(crate) fn evict(&self, idle_since: u64) -> bool {
        self.replace_idle_since(idle_since, EVICTED)
    }

    fn replace_idle_since(&self, old: u64, new: u64) -> bool {
        self.idle_since.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes that hyper has all of the answer.
    pub(crate) fn answer_ended(&self) {
        self.set_phase(Phase::Sending);
    }

    /// Microseconds from the epoch to when the server began to wait for the client: for its next request, or to read an
    /// answer. `None` while a request is handled.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Relaxed)).filter(|since| *since < EVICTED)
    }

    /// Whether the connection gave way to another.
    pub(crate) fn is_evicted(&self) -> bool {
        self.idle_since.load(Ordering::Relaxed) == EVICTED
    }

    /// Whether the client has closed its side.
    pub(crate) fn has_client_ended(&self) -> bool {
        self.client_ended.load(Ordering::Relaxed)
    }

    /// Ends when the client is late, and returns the phase it is late in.
    pub(crate) async fn overdue(&self) -> Phase {
        let mut timer = pin!(sleep_until(Instant::now() + RECHECK));
        std::future::poll_fn(|context| {
            loop {
                // The deadline nearly always moves away, so the timer is set anew only when it has run out or is late.
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

    fn received(&self, bytes: usize) {
        match self.phase() {
            _ if bytes == 0 => self.client_ended.store(true, Ordering::Relaxed),
            Phase::New | Phase::Idle => {
                self.deadline.store(self.now() + micros(self.limits.head_timeout), Ordering::Relaxed);
                self.set_phase(Phase::Head);
            }
            // Bytes that come while the client still reads an answer do not shorten its time for that.
            Phase::Head | Phase::Handling | Phase::Sending => {}
        }
    }

    /// Notes that the system took `bytes`. Only bytes that had to wait for the client show how fast it reads.
    fn sent(&self, bytes: usize) {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if self.is_answering() && deadline != NEVER {
            let earned = (bytes as u64).saturating_mul(1_000_000) / MIN_READ_RATE;
            let latest = self.now() + micros(MAX_READ_CREDIT);
            self.deadline.store((deadline + earned).min(latest), Ordering::Relaxed);
        }
    }

    /// Notes that the system takes no more until the client has read.
    fn blocked(&self) {
        if self.is_answering() && self.deadline.load(Ordering::Relaxed) == NEVER {
            self.deadline.store(self.now() + micros(READ_GRACE), Ordering::Relaxed);
        }
        if self.phase() == Phase::Sending {
            self.replace_idle_since(NEVER, self.now());
        }
    }

    /// Notes that the system has all that hyper had to send.
    fn flushed(&self) {
        match self.phase() {
            Phase::Handling => self.deadline.store(NEVER, Ordering::Relaxed),
            Phase::Sending => self.rest(Phase::Idle, self.limits.idle_timeout),
            Phase::New | Phase::Head | Phase::Idle => {}
        }
    }

    /// Begins to wait for the client, with no request under way.
    fn rest(&self, phase: Phase, time: Duration) {
        let now = self.now();
        let idle_since = self.idle_since.load(Ordering::Relaxed);
        if idle_since != EVICTED {
            self.replace_idle_since(idle_since, now);
        }
        self.deadline.store(now.saturating_add(micros(time)), Ordering::Relaxed);
        self.set_phase(phase);
    }

    pub(crate) fn is_answering(&self) -> bool {
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

/// A stream that reports to its [`ConnectionDeadlines`] what moves.
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
            Poll::Ready(Ok(bytes)) => self.deadlines.sent(bytes),
            Poll::Pending => self.deadlines.blocked(),
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
            self.deadlines.received(buffer.filled().len() - before);
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
        self.deadlines.flushed();
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
