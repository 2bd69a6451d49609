//! Queues and destinations, as the scheduler knows them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::store::QueueId;

/// Sends in progress to one destination.
pub(super) const MAX_DESTINATION_SENDS: usize = 16;

/// Sends in progress of a queue whose receiver fails or has not answered yet. Doubles with each success.
pub(super) const FIRST_WINDOW: usize = 2;

/// A queue's receiver, as loading the queue found it.
#[derive(Debug, Clone)]
pub(in crate::delivery) struct Receiver {
    pub(in crate::delivery) destination: String,
    /// Maximum sends in progress to the destination.
    pub(in crate::delivery) max_sends: usize,
    /// Maximum deliveries of one send.
    pub(in crate::delivery) max_batch: usize,
    pub(in crate::delivery) is_failing: bool,
}

/// A host and port, or a file.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) sends: usize,
    pub(super) max_sends: usize,
    /// Queues that wait for one of them to end.
    pub(super) waiting: VecDeque<QueueId>,
}

/// A queue that is due, will be due, or has sends in progress.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) phase: Phase,
    pub(super) sends: usize,
    pub(super) window: usize,
    pub(super) is_failing: bool,
    pub(super) is_paused: bool,
    pub(super) max_sends: usize,
    pub(super) max_batch: usize,
    pub(super) destination: Option<Arc<str>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            sends: 0,
            window: FIRST_WINDOW,
            is_failing: false,
            is_paused: false,
            max_sends: MAX_DESTINATION_SENDS,
            max_batch: 1,
            destination: None,
        }
    }
}

impl Queue {
    /// Takes over what loading showed.
    pub(super) fn learn(&mut self, receiver: &Receiver, destination: Arc<str>) {
        self.max_sends = receiver.max_sends.max(1);
        self.max_batch = receiver.max_batch.max(1);
        self.is_failing = receiver.is_failing;
        self.is_paused = false;
        self.destination = Some(destination);
    }

    /// How many more sends it may have in progress.
    pub(super) fn free(&self) -> usize {
        self.limit().saturating_sub(self.sends)
    }

    /// Maximum sends in progress.
    pub(super) fn limit(&self) -> usize {
        if self.is_failing { FIRST_WINDOW.min(self.max_sends) } else { self.window.min(self.max_sends) }
    }
}

impl Destination {
    pub(super) fn new(max_sends: usize) -> Self {
        Self { sends: 0, max_sends, waiting: VecDeque::new() }
    }

    /// How many more sends may be in progress.
    pub(super) fn free(&self) -> usize {
        self.max_sends.saturating_sub(self.sends)
    }
}

/// Why a queue is not being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known to wait.
    Idle,
    /// Due at this time.
    Timer(Timestamp),
    /// Due.
    Ready,
    /// Due, but as many of its own sends are in progress as may be.
    Full,
    /// Due, but as many sends to its destination are in progress as may be.
    Waiting,
    /// Being loaded; `is_due`: due again since.
    Loading { is_due: bool },
}
