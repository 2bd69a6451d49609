//! What waits for the writer: a bounded line of operations, and long jobs that are worked off in slices.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::job::Job;
use super::operation::Operation;
use crate::store::StoreError;

/// Operations that may wait, those in the writer's backlog included.
const LENGTH: usize = 1024;
/// How long a caller waits for a place in a full line.
const PATIENCE: Duration = Duration::from_millis(250);

/// The line before the writer.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    places: Semaphore,
}

#[derive(Default)]
struct Waiting {
    operations: VecDeque<Box<dyn Operation>>,
    jobs: VecDeque<Job>,
    closing: Option<End>,
    /// Something has come since the writer looked last.
    has_news: bool,
    writer_sleeps: bool,
}

/// How a store ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The next start is to trust the index.
    Clean,
    /// The store was dropped without being closed.
    Abandoned,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { waiting: Mutex::default(), arrived: Condvar::new(), places: Semaphore::new(LENGTH) }
    }

    /// Puts an operation into the line.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the line stays full, [`StoreError::Unavailable`] after [`Queue::close`].
    pub(crate) async fn push(&self, operation: Box<dyn Operation>) -> Result<(), StoreError> {
        let place = match self.places.try_acquire() {
            Ok(place) => Ok(place),
            Err(_) => timeout(PATIENCE, self.places.acquire()).await.map_err(|_elapsed| StoreError::Busy)?,
        };
        place.map_err(|_closed| closed())?.forget();
        let mut waiting = self.lock();
        if waiting.closing.is_some() {
            return Err(closed());
        }
        waiting.operations.push_back(operation);
        self.wake(waiting);
        Ok(())
    }

    /// Leaves a job to be worked off.
    pub(crate) fn push_job(&self, job: Job) {
        let mut waiting = self.lock();
        if waiting.closing.is_none() {
            waiting.jobs.push_back(job);
        }
        self.wake(waiting);
    }

    pub(crate) fn take_job(&self) -> Option<Job> {
        self.lock().jobs.pop_front()
    }

    pub(crate) fn has_jobs(&self) -> bool {
        !self.lock().jobs.is_empty()
    }

    /// Gives back the places of operations that wait no longer, in the line or in a backlog.
    pub(crate) fn give_back(&self, places: usize) {
        self.places.add_permits(places);
    }

    /// Moves all that waits into `backlog`, where it keeps its places. If nothing does, waits for it, for at most `patience`. Returns how it
    /// ends, if no more will come.
    pub(crate) fn take(
        &self,
        backlog: &mut VecDeque<Box<dyn Operation>>,
        patience: Option<Duration>,
    ) -> Option<End> {
        let mut waiting = self.lock();
        if backlog.is_empty() && !waiting.has_news && waiting.closing.is_none() {
            waiting.writer_sleeps = true;
            waiting = self.sleep(waiting, patience);
            waiting.writer_sleeps = false;
        }
        waiting.has_news = false;
        backlog.append(&mut waiting.operations);
        waiting.closing
    }

    fn sleep<'a>(
        &'a self,
        waiting: MutexGuard<'a, Waiting>,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, Waiting> {
        match patience {
            None => self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                self.arrived.wait_timeout(waiting, patience).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Lets nothing more in. The first to say how it ends is heeded.
    pub(crate) fn close(&self, end: End) {
        self.places.close();
        let mut waiting = self.lock();
        waiting.closing.get_or_insert(end);
        waiting.jobs.clear();
        self.wake(waiting);
    }

    /// Lets the writer look at what is due, also if no operation waits.
    pub(crate) fn call_writer(&self) {
        self.wake(self.lock());
    }

    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        waiting.has_news = true;
        let sleeps = waiting.writer_sleeps;
        drop(waiting);
        if sleeps {
            self.arrived.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("it is being closed".to_owned())
}
