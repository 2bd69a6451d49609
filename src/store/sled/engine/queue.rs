//! Queue of the writer: a bounded number of operations, and background jobs.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::operation::WriteOperation;
use crate::store::{Result, StoreError, StoreFile, StoreUsage};

/// Capacity in operations, those in the writer's backlog included.
const CAPACITY: usize = 1024;
/// How long a caller waits for a free place in the queue.
const PUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// Sending side of the queue.
pub(crate) struct WriterQueue {
    messages: Sender<Message>,
    permits: Semaphore,
}

pub(crate) enum Message {
    Operation(Box<dyn WriteOperation>),
    /// The next slice of a background job.
    Job(Box<dyn WriteOperation>),
    Request(Request),
    Wake,
    Close(ShutdownMode),
}

/// A request about the store as a whole, answered between two groups.
pub(crate) enum Request {
    /// Open the files of the store.
    Snapshot(oneshot::Sender<Result<Vec<StoreFile>>>),
    /// Compact the journal once the background jobs are done.
    Compact,
    /// Verify the index; the answer is why it was rebuilt, if it was.
    Verify(oneshot::Sender<Option<String>>),
    Usage(oneshot::Sender<StoreUsage>),
}

/// How a store is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShutdownMode {
    /// The next start can trust the index.
    Clean,
    /// The store was dropped without being closed.
    Abandoned,
}

/// Receiving side of the queue, with what the writer has received and not begun.
pub(crate) struct Backlog {
    messages: Receiver<Message>,
    pub(crate) operations: VecDeque<Box<dyn WriteOperation>>,
    pub(crate) jobs: VecDeque<Box<dyn WriteOperation>>,
    pub(crate) requests: Vec<Request>,
    /// The first request decides how the store is stopped.
    pub(crate) closing: Option<ShutdownMode>,
}

impl WriterQueue {
    pub(crate) fn new() -> (WriterQueue, Backlog) {
        let (sender, messages) = channel();
        let (operations, jobs) = (VecDeque::new(), VecDeque::new());
        let queue = WriterQueue { messages: sender, permits: Semaphore::new(CAPACITY) };
        (queue, Backlog { messages, operations, jobs, requests: Vec::new(), closing: None })
    }

    /// Queues an operation.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the queue stays full, [`StoreError::Unavailable`] after [`WriterQueue::close`].
    pub(crate) async fn push(&self, operation: Box<dyn WriteOperation>) -> Result<()> {
        let permit = match self.permits.try_acquire() {
            Ok(permit) => Ok(permit),
            Err(_) => {
                timeout(PUSH_TIMEOUT, self.permits.acquire()).await.map_err(|_elapsed| StoreError::Busy)?
            }
        };
        let closed = || StoreError::Unavailable("it is being closed".to_owned());
        permit.map_err(|_closed| closed())?.forget();
        self.messages.send(Message::Operation(operation)).map_err(|_gone| closed())
    }

    /// Sends a message that takes no place in the queue; it has no effect once the writer has ended.
    pub(crate) fn send(&self, message: Message) {
        drop(self.messages.send(message));
    }

    /// Releases the permits of operations that have left the queue and the backlog.
    pub(crate) fn release(&self, permits: usize) {
        self.permits.add_permits(permits);
    }

    /// Closes the queue: what it has is still done, except background jobs.
    pub(crate) fn close(&self, mode: ShutdownMode) {
        self.permits.close();
        self.send(Message::Close(mode));
    }
}

impl Backlog {
    /// Receives all that is queued, where operations keep their permits; if there is nothing to do, waits at most `max_wait`.
    pub(crate) fn receive(&mut self, max_wait: Duration) {
        let is_idle = self.operations.is_empty() && self.closing.is_none();
        let first = if is_idle { self.messages.recv_timeout(max_wait).ok() } else { None };
        for message in first.into_iter().chain(self.messages.try_iter()) {
            match message {
                Message::Operation(operation) => self.operations.push_back(operation),
                Message::Job(job) => self.jobs.push_back(job),
                Message::Request(request) => self.requests.push(request),
                Message::Wake => {}
                Message::Close(mode) => self.closing = self.closing.or(Some(mode)),
            }
        }
    }
}
