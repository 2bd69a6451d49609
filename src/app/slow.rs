//! Work that takes long: on other threads, in two queues, so that nobody waits for it who asks for less.
//!
//! In a queue the forms take turns, however much is asked of one of them. Who asks for much of a form waits until that
//! is done which others asked of it before, and for what other forms have begun.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::turns::Turns;
use super::{App, AppError};
use crate::id::FormId;
use crate::store::StoreError;
use crate::store::share::half_the_machine;

/// Nanoseconds of work, at worst, for which it is not worth while to go to another thread.
pub(super) const PATIENCE_NANOS: usize = 4_000_000;

/// Nanoseconds of work, at worst, for which nobody should wait who asks for less.
const LONG_NANOS: usize = 50_000_000;

/// What waits for a thread.
pub(super) struct Queue {
    /// One at a time for a form.
    turns: Turns<FormId>,
    /// Given in the order of asking, so that the forms take turns.
    places: Arc<Semaphore>,
}

impl Queue {
    fn new() -> Self {
        Self { turns: Turns::new(), places: half_the_machine() }
    }
}

/// The queues: what takes long is not in the way of what is soon done.
pub(super) struct Queues {
    brief: Queue,
    long: Queue,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self { brief: Queue::new(), long: Queue::new() }
    }

    fn of(&self, nanos: usize) -> &Queue {
        if nanos > LONG_NANOS { &self.long } else { &self.brief }
    }
}

impl App {
    /// Does `work`, which takes `nanos` at worst and is asked of `form`, on another thread when its turn comes.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        form: FormId,
        nanos: usize,
        work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        let queue = self.queues.of(nanos);
        let turn = queue.turns.at(form).await;
        let place = Arc::clone(&queue.places).acquire_owned().await.expect("it is never closed");
        elsewhere(move || {
            // They end with the work, also where nobody waits for that any more.
            let _held = (place, turn);
            work()
        })
        .await
    }
}

/// Does `work` on another thread.
pub(super) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
) -> Result<T, AppError> {
    let joined = spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(StoreError::Panicked(error.to_string()).into()))
}

#[cfg(test)]
mod tests {
    use std::thread::available_parallelism;

    use super::Queues;

    #[test]
    fn neither_queue_takes_more_than_half_of_the_machine() {
        let half = (available_parallelism().unwrap().get() / 2).max(1);
        let Queues { brief, long } = Queues::new();
        for queue in [brief, long] {
            assert_eq!(queue.places.available_permits(), half);
        }
    }
}
