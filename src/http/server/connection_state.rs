//! The state of one connection: its deadlines, and since when it waits for its client.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::config::HttpSettings;

/// Minimum rate at which a client must read a response, in bytes per second. A body received at this rate is not slow.
const MIN_RATE: u64 = 16 << 10;

/// Time a client may read nothing before the minimum rate applies.
const READ_GRACE: Duration = Duration::from_secs(5);

/// Maximum pause a client can earn by reading faster than the minimum rate.
const MAX_READ_CREDIT: Duration = Duration::from_secs(60);

/// Interval at which the deadlines are checked for changes.
const RECHECK: Duration = Duration::from_secs(1);

/// Limit on what the client of an HTTP/2 connection sends in vain: frames that carry neither a request nor a body count 1,
/// cancelled requests [`RESET_COST`] (CVE-2023-44487).
const MAX_WASTE: u32 = 1_000;

const RESET_COST: u32 = 10;

/// Taken off the waste by each completed request, and by each piece of a response that the client receives.
const PROGRESS: u32 = 20;

/// Phase of a connection in the request/response cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    /// No byte received yet.
    New,
    /// Part of a request head received.
    Head,
    /// Requests are in progress. Reading their bodies has a deadline of its own.
    Busy,
    /// Waiting for the next request. If its first bytes came before the response was sent, hyper has buffered them and they
    /// go unnoticed here; a client gains no more by that than by sending nothing.
    Idle,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client or hyper ended it.
    Complete,
    /// The client does not send the rest of a head.
    HalfHead,
    /// The client does not send a request.
    Idle,
    /// The client does not read a response, or send a body, and its connection is needed.
    Unread,
}

/// An open connection, shared by its task, its stream and requests, and the connection table.
pub(crate) struct Connection {
    /// The network whose limit it counts against; `None` for one of the few connections that serve only health checks.
    pub(crate) network: Option<IpAddr>,
    pub(crate) settings: Arc<HttpSettings>,
    /// Notified when the connection should close, after the requests in progress unless it was evicted.
    pub(crate) close: Notify,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    phase: ConnectionPhase,
    /// When the phase must end.
    deadline: Option<Instant>,
    /// When the client must have read more. Replaces `deadline` while the client keeps a response from being sent.
    read_deadline: Option<Instant>,
    /// Requests in progress.
    requests: u32,
    /// Of these, requests whose bodies are awaited.
    receiving: u32,
    /// Of these, responses that wait for the client to receive them. Over HTTP/1.1 the socket shows that instead.
    sending: u32,
    /// When the connection began to wait for its client in all it does; later by the time that the bodies received earn.
    waiting_since: Option<Instant>,
    is_evicted: bool,
    /// What the client has sent in vain, see [`MAX_WASTE`].
    waste: u32,
}

impl Connection {
    /// Returns a connection that opens now.
    pub(crate) fn new(network: Option<IpAddr>, settings: Arc<HttpSettings>) -> Self {
        let now = Instant::now();
        let state = ConnectionState {
            phase: ConnectionPhase::New,
            deadline: now.checked_add(settings.first_byte_timeout),
            read_deadline: None,
            requests: 0,
            receiving: 0,
            sending: 0,
            waiting_since: Some(now),
            is_evicted: false,
            waste: 0,
        };
        Self { network, settings, close: Notify::new(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection serves only health checks, because all others are taken.
    pub(crate) fn is_health_only(&self) -> bool {
        self.network.is_none()
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.lock().is_evicted
    }

    /// Whether a request is in progress, or its response not yet sent.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.requests > 0 || state.read_deadline.is_some()
    }

    /// Returns whether bodies are being received, and since when the connection waits for its client; `None` if it does not.
    /// The lowest is evicted first: a connection that waits for a request or for its response to be read, then slow bodies.
    pub(crate) fn eviction_order(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        Some((state.receiving > 0, state.waiting_since?))
    }

    /// Evicts the connection if it waits for its client; returns whether it does.
    pub(crate) fn evict(&self) -> bool {
        let mut state = self.lock();
        state.is_evicted |= state.waiting_since.is_some();
        state.is_evicted
    }

    /// Resolves when a deadline has passed.
    pub(crate) async fn overdue(&self) -> Ending {
        loop {
            let (now, (deadline, ending)) = (Instant::now(), self.lock().deadline());
            match deadline {
                Some(deadline) if deadline <= now => return ending,
                deadline => sleep_until(deadline.unwrap_or(now + RECHECK).min(now + RECHECK)).await,
            }
        }
    }

    /// Records that the head of a request is complete. Returns false if the connection was evicted before.
    pub(crate) fn begin_request(&self) -> bool {
        let mut state = self.lock();
        state.requests += 1;
        (state.phase, state.deadline) = (ConnectionPhase::Busy, None);
        state.update_waiting();
        !state.is_evicted
    }

    /// Records that hyper has taken the whole response to a request, or the request was cancelled. `was_sending` if
    /// [`begin_sending`](Self::begin_sending) was called for it.
    pub(crate) fn end_request(&self, was_sending: bool, is_complete: bool) {
        let mut state = self.lock();
        state.requests -= 1;
        if was_sending {
            state.sending -= 1;
            state.read_deadline = state.read_deadline.filter(|_| state.sending > 0);
        }
        if is_complete {
            state.waste = state.waste.saturating_sub(PROGRESS);
        } else {
            state.waste += RESET_COST;
        }
        if state.requests == 0 {
            state.begin_idle(&self.settings);
        }
        state.update_waiting();
    }

    /// Records that the body of a request has not arrived with its head.
    pub(crate) fn begin_body(&self) {
        let mut state = self.lock();
        state.receiving += 1;
        state.update_waiting();
    }

    /// Records that a part of such a body was received.
    pub(crate) fn on_body(&self, bytes: usize) {
        let mut state = self.lock();
        let earned = |since: Instant| (since + earned_time(bytes)).min(Instant::now());
        state.waiting_since = state.waiting_since.map(earned);
    }

    /// Records that such a body is complete, or not awaited any more.
    pub(crate) fn end_body(&self) {
        let mut state = self.lock();
        state.receiving -= 1;
        state.update_waiting();
    }

    /// Records that hyper has a response to send over HTTP/2. A client shows that it receives responses by taking the pieces
    /// of any of them.
    pub(crate) fn begin_sending(&self) {
        let mut state = self.lock();
        state.sending += 1;
        state.read_deadline.get_or_insert_with(|| Instant::now() + READ_GRACE);
        state.update_waiting();
    }

    /// Records bytes received, and over HTTP/2 the `frames` among them that carry neither a request nor a body. Between two
    /// requests these do not start the deadline of a head, and do not extend that of an idle connection. Returns false if
    /// the client has sent too much in vain.
    pub(crate) fn on_received(&self, bytes: usize, frames: Option<u32>) -> bool {
        let mut state = self.lock();
        let begins_head = match state.phase {
            ConnectionPhase::New => true,
            // Bytes received while the client still reads a response do not shorten the deadline for reading it.
            ConnectionPhase::Idle => frames.is_none() && state.read_deadline.is_none(),
            ConnectionPhase::Head | ConnectionPhase::Busy => false,
        };
        if bytes > 0 && begins_head {
            state.deadline = Instant::now().checked_add(self.settings.head_timeout);
            state.phase = ConnectionPhase::Head;
        }
        state.waste = state.waste.saturating_add(frames.unwrap_or_default());
        state.waste <= MAX_WASTE
    }

    /// Records that the socket took `bytes`, or over HTTP/2 that the client received a piece of a response. Only bytes that
    /// had to wait for the client show how fast it reads.
    pub(crate) fn on_sent(&self, bytes: usize) {
        let mut state = self.lock();
        state.waste = state.waste.saturating_sub(PROGRESS);
        let earned =
            |deadline: Instant| (deadline + earned_time(bytes)).min(Instant::now() + MAX_READ_CREDIT);
        state.read_deadline = state.read_deadline.map(earned);
    }

    /// Records that the socket is full until the client reads.
    pub(crate) fn on_blocked(&self) {
        self.lock().read_deadline.get_or_insert_with(|| Instant::now() + READ_GRACE);
    }

    /// Records that the socket has taken everything hyper had to send.
    pub(crate) fn on_flushed(&self) {
        let mut state = self.lock();
        if state.read_deadline.take().is_some() && state.phase == ConnectionPhase::Idle {
            state.begin_idle(&self.settings);
            state.update_waiting();
        }
    }
}

impl ConnectionState {
    /// Returns the deadline that applies, and how the connection ends then.
    fn deadline(&self) -> (Option<Instant>, Ending) {
        match self.phase {
            _ if self.read_deadline.is_some() => (self.read_deadline, Ending::Unread),
            ConnectionPhase::Head => (self.deadline, Ending::HalfHead),
            _ => (self.deadline, Ending::Idle),
        }
    }

    fn begin_idle(&mut self, settings: &HttpSettings) {
        self.phase = ConnectionPhase::Idle;
        self.deadline = Instant::now().checked_add(settings.idle_timeout);
        self.waiting_since = None;
    }

    /// Derives whether the connection waits for its client from the requests in progress.
    fn update_waiting(&mut self) {
        let is_waiting = self.requests == self.receiving + self.sending;
        let since = self.waiting_since.take().filter(|_| is_waiting);
        self.waiting_since = is_waiting.then(|| since.unwrap_or_else(Instant::now));
    }
}

/// Returns the time in which a client must send or receive `bytes`.
fn earned_time(bytes: usize) -> Duration {
    Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / MIN_RATE)
}
