//! Work that takes long: on other threads, in three queues, so that nobody waits for it who asks for much less.
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
const LONG_NANOS: [usize; 2] = [50_000_000, 1_000_000_000];

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
pub(super) struct Queues([Queue; LONG_NANOS.len() + 1]);

impl Queues {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Queue::new()))
    }

    fn of(&self, nanos: usize) -> &Queue {
        &self.0[LONG_NANOS.partition_point(|long| nanos > *long)]
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
    use super::{Queues, half_the_machine};

    #[test]
    fn no_queue_takes_more_than_half_of_the_machine() {
        let half = half_the_machine().available_permits();
        assert!(Queues::new().0.iter().all(|queue| queue.places.available_permits() == half));
    }

    #[test]
    fn what_takes_long_is_not_in_the_way_of_what_takes_less() {
        let queues = Queues::new();
        for (one, other, is_same) in [
            (5_000_000, 50_000_000, true),
            (50_000_000, 50_000_001, false),
            (1_000_000_000, 1_000_000_001, false),
            (1_000_000_001, usize::MAX, true),
        ] {
            assert_eq!(std::ptr::eq(queues.of(one), queues.of(other)), is_same, "{one} {other}");
        }
    }
}
