//! Deadlines of one connection: for its first byte, the rest of a head, the next request, and for reading a response.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, sleep_until};

use crate::config::HttpSettings;

/// Minimum rate at which a client must read a response, in bytes per second.
const MIN_READ_RATE: u64 = 16 << 10;

/// Time a client may read nothing before the minimum rate applies.
const READ_GRACE: Duration = Duration::from_secs(5);

/// Maximum pause a client can earn by reading faster than the minimum rate.
const MAX_READ_CREDIT: Duration = Duration::from_secs(60);

/// Interval at which a connection without a deadline is checked again.
const RECHECK: Duration = Duration::from_secs(60);

/// Phase of a connection in the request/response cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No byte received yet.
    New,
    /// Part of a request head received.
    Head,
    /// A request is being handled. Reading its body has a deadline of its own.
    Handling,
    /// hyper has the whole response, the socket not yet.
    Sending,
    /// Waiting for the next request. If its first bytes came before the response was sent, hyper has buffered them and they
    /// go unnoticed here; a client gains no more by that than by sending nothing.
    Idle,
}

impl Phase {
    pub(crate) fn is_responding(self) -> bool {
        matches!(self, Self::Handling | Self::Sending)
    }
}

/// The phase of one connection and its current deadline, shared by its own task and the connection table.
pub(crate) struct ConnectionDeadlines {
    settings: Arc<HttpSettings>,
    state: Mutex<ConnectionState>,
    /// Wakes the task of an HTTP/2 connection, since other tasks move its deadline.
    waker: Mutex<Option<Waker>>,
}

/// The streams of an HTTP/2 connection.
#[derive(Debug, Clone, Copy, Default)]
struct Streams {
    /// Requests in progress.
    open: u32,
    /// Of these, responses that wait for the client to receive them.
    sending: u32,
    /// Requests cancelled by the client; each completed one takes one off.
    reset: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct ConnectionState {
    pub(crate) phase: Phase,
    deadline: Option<Instant>,
    /// When the server began to wait for the client to send a request or read a response; `None` while a request is
    /// handled.
    pub(crate) idle_since: Option<Instant>,
    /// Whether the connection is closed at once: for another one, or because of its client.
    pub(crate) is_evicted: bool,
    /// Whether the client has closed its side.
    pub(crate) has_client_ended: bool,
    streams: Streams,
}

impl ConnectionDeadlines {
    /// Returns the deadlines of a connection that opens now.
    pub(crate) fn new(settings: Arc<HttpSettings>) -> Self {
        let now = Instant::now();
        let state = ConnectionState {
            phase: Phase::New,
            deadline: now.checked_add(settings.first_byte_timeout),
            idle_since: Some(now),
            is_evicted: false,
            has_client_ended: false,
            streams: Streams::default(),
        };
        Self { settings, state: Mutex::new(state), waker: Mutex::default() }
    }

    pub(crate) fn state(&self) -> ConnectionState {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request head is complete. Returns false if the connection was evicted before.
    pub(crate) fn begin_request(&self) -> bool {
        let mut state = self.lock();
        (state.phase, state.deadline, state.idle_since) = (Phase::Handling, None, None);
        !state.is_evicted
    }

    /// Records a request over HTTP/2. Returns false if the connection was evicted before.
    pub(crate) fn begin_stream(&self) -> bool {
        let mut state = self.lock();
        state.streams.open += 1;
        state.follow_streams(&self.settings);
        !state.is_evicted
    }

    /// Records that hyper has a response to send over HTTP/2. A client shows that it receives responses by taking the pieces
    /// of any of them.
    pub(crate) fn begin_sending(&self) {
        let mut state = self.lock();
        state.streams.sending += 1;
        if state.streams.sending == 1 {
            state.deadline = Some(Instant::now() + READ_GRACE);
        }
        state.follow_streams(&self.settings);
    }

    /// Records that a request over HTTP/2 has ended. Returns the count of cancelled ones.
    pub(crate) fn end_stream(&self, was_sending: bool, is_complete: bool) -> u32 {
        let mut state = self.lock();
        state.streams.open -= 1;
        state.streams.sending -= u32::from(was_sending);
        let resets = state.streams.reset;
        let resets = if is_complete { resets.saturating_sub(1) } else { resets + 1 };
        state.streams.reset = resets;
        state.follow_streams(&self.settings);
        drop(state);
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
        resets
    }

    /// Wakes the task of `waker` when a request over HTTP/2 has ended.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let mut current = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !current.as_ref().is_some_and(|current| current.will_wake(waker)) {
            *current = Some(waker.clone());
        }
    }

    /// Marks the connection to be closed at once; returns whether it was not marked before.
    pub(crate) fn close_now(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_evicted, true)
    }

    /// Evicts the connection if it is idle; returns whether it was.
    pub(crate) fn evict(&self) -> bool {
        let mut state = self.lock();
        state.is_evicted = state.idle_since.is_some();
        state.is_evicted
    }

    /// Records that hyper has taken the whole response.
    pub(crate) fn response_ended(&self) {
        self.lock().phase = Phase::Sending;
    }

    /// Resolves when a deadline passes, with the phase it belongs to.
    pub(crate) async fn overdue(&self) -> Phase {
        let mut timer = pin!(sleep_until(Instant::now() + RECHECK));
        std::future::poll_fn(|context| {
            loop {
                // The deadline nearly always moves later, so the timer is reset only when it fires or the deadline is earlier.
                let ConnectionState { phase, deadline, .. } = self.state();
                if let Some(deadline) = deadline.filter(|deadline| *deadline < timer.deadline()) {
                    timer.as_mut().reset(deadline);
                }
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return Poll::Ready(phase);
                }
                timer.as_mut().reset(deadline.unwrap_or_else(|| Instant::now() + RECHECK));
            }
        })
        .await
    }

    /// Records bytes received over HTTP/2. Between requests they may be pings: they do not start the deadline of a head, and
    /// do not extend that of an idle connection.
    pub(crate) fn on_frames_received(&self, bytes: usize) {
        let is_idle = self.lock().phase == Phase::Idle;
        if bytes == 0 || !is_idle {
            self.on_received(bytes);
        }
    }

    fn on_received(&self, bytes: usize) {
        let mut state = self.lock();
        match state.phase {
            _ if bytes == 0 => state.has_client_ended = true,
            Phase::New | Phase::Idle => {
                state.deadline = Instant::now().checked_add(self.settings.head_timeout);
                state.phase = Phase::Head;
            }
            // Bytes received while the client still reads a response do not shorten the deadline for reading it.
            Phase::Head | Phase::Handling | Phase::Sending => {}
        }
    }

    /// Records that the socket took `bytes`. Only bytes that had to wait for the client show how fast it reads.
    pub(crate) fn on_sent(&self, bytes: usize) {
        let mut state = self.lock();
        if let Some(deadline) = state.deadline.filter(|_| state.phase.is_responding()) {
            let earned = Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / MIN_READ_RATE);
            state.deadline = Some((deadline + earned).min(Instant::now() + MAX_READ_CREDIT));
        }
    }

    /// Records that the socket is full until the client reads.
    fn on_blocked(&self) {
        let (mut state, now) = (self.lock(), Instant::now());
        if state.phase.is_responding() {
            state.deadline.get_or_insert(now + READ_GRACE);
        }
        if state.phase == Phase::Sending {
            state.idle_since.get_or_insert(now);
        }
    }

    /// Records that the socket has taken everything hyper had to send.
    fn on_flushed(&self) {
        let mut state = self.lock();
        match state.phase {
            Phase::Handling => state.deadline = None,
            Phase::Sending => {
                let now = Instant::now();
                state.deadline = now.checked_add(self.settings.idle_timeout);
                (state.phase, state.idle_since) = (Phase::Idle, Some(now));
            }
            Phase::New | Phase::Head | Phase::Idle => {}
        }
    }
}

impl ConnectionState {
    /// Derives the phase from the streams of an HTTP/2 connection, with what depends on it.
    fn follow_streams(&mut self, settings: &HttpSettings) {
        let (now, Streams { open, sending, .. }) = (Instant::now(), self.streams);
        if sending == 0 {
            self.deadline = None;
        }
        match open {
            0 => {
                self.phase = Phase::Idle;
                self.deadline = now.checked_add(settings.idle_timeout);
                self.idle_since = Some(now);
            }
            _ if open == sending => {
                self.phase = Phase::Sending;
                self.idle_since.get_or_insert(now);
            }
            _ => (self.phase, self.idle_since) = (Phase::Handling, None),
        }
    }
}

/// A stream that reports bytes read and written to its [`ConnectionDeadlines`].
pub(crate) struct TimedStream<S> {
    pub(crate) stream: S,
    pub(crate) deadlines: Arc<ConnectionDeadlines>,
}

impl<S> TimedStream<S> {
    fn report(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => self.deadlines.on_sent(bytes),
            Poll::Pending => self.report_pending(),
            Poll::Ready(Err(_)) => {}
        }
        written
    }

    /// Reports that the socket is full, unless tokio only wants other tasks to run.
    fn report_pending(&self) {
        if has_budget_remaining() {
            self.deadlines.on_blocked();
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
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            self.deadlines.on_received(buffer.filled().len() - before);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS holds back bytes that its socket has not taken.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        match flushed {
            Poll::Ready(Ok(())) => self.deadlines.on_flushed(),
            Poll::Pending => self.report_pending(),
            Poll::Ready(Err(_)) => {}
        }
        flushed
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
