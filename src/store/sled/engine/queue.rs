//! Queue of the writer: a bounded number of operations, and background jobs.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::operation::WriteOperation;
use crate::store::{Result, StoreError};

/// Capacity in operations, those in the writer's backlog included.
const CAPACITY: usize = 1024;
/// How long a caller waits for a free place in the queue.
const PUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// Queue of the writer.
pub(crate) struct WriterQueue {
    waiting: Mutex<QueueState>,
    arrived: Condvar,
    permits: Semaphore,
}

#[derive(Default)]
struct QueueState {
    operations: VecDeque<Box<dyn WriteOperation>>,
    jobs: VecDeque<Box<dyn WriteOperation>>,
    closing: Option<ShutdownMode>,
    /// Something was queued since the writer last looked.
    has_news: bool,
    writer_sleeps: bool,
}

/// How a store is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShutdownMode {
    /// The next start can trust the index.
    Clean,
    /// The store was dropped without being closed.
    Abandoned,
}

impl WriterQueue {
    pub(crate) fn new() -> WriterQueue {
        WriterQueue { waiting: Mutex::default(), arrived: Condvar::new(), permits: Semaphore::new(CAPACITY) }
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
        permit.map_err(|_closed| closed())?.forget();
        let mut waiting = self.lock();
        if waiting.closing.is_some() {
            return Err(closed());
        }
        waiting.operations.push_back(operation);
        self.wake(waiting);
        Ok(())
    }

    /// Queues the next slice of a background job.
    pub(crate) fn push_job(&self, job: Box<dyn WriteOperation>) {
        let mut waiting = self.lock();
        if waiting.closing.is_none() {
            waiting.jobs.push_back(job);
        }
        self.wake(waiting);
    }

    pub(crate) fn take_job(&self) -> Option<Box<dyn WriteOperation>> {
        self.lock().jobs.pop_front()
    }

    pub(crate) fn has_jobs(&self) -> bool {
        !self.lock().jobs.is_empty()
    }

    /// Releases the permits of operations that have left the queue and the backlog.
    pub(crate) fn release(&self, permits: usize) {
        self.permits.add_permits(permits);
    }

    /// Moves all queued operations to `backlog`, where they keep their permits; if there are none, waits at most
    /// `max_wait`. Returns how the store is stopped, once the queue is closed.
    pub(crate) fn take(
        &self,
        backlog: &mut VecDeque<Box<dyn WriteOperation>>,
        max_wait: Duration,
    ) -> Option<ShutdownMode> {
        let mut waiting = self.lock();
        if backlog.is_empty() && !waiting.has_news && waiting.closing.is_none() {
            waiting.writer_sleeps = true;
            waiting = self.arrived.wait_timeout(waiting, max_wait).unwrap_or_else(PoisonError::into_inner).0;
            waiting.writer_sleeps = false;
        }
        waiting.has_news = false;
        backlog.append(&mut waiting.operations);
        waiting.closing
    }

    /// Closes the queue. The first call decides how the store is stopped.
    pub(crate) fn close(&self, end: ShutdownMode) {
        self.permits.close();
        let mut waiting = self.lock();
        waiting.closing.get_or_insert(end);
        waiting.jobs.clear();
        self.wake(waiting);
    }

    /// Wakes the writer, even if no operation is queued.
    pub(crate) fn wake_writer(&self) {
        self.wake(self.lock());
    }

    fn wake(&self, mut waiting: MutexGuard<'_, QueueState>) {
        waiting.has_news = true;
        let sleeps = waiting.writer_sleeps;
        drop(waiting);
        if sleeps {
            self.arrived.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("it is being closed".to_owned())
}
