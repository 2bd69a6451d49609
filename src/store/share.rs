//! The share of the machine that work may take which takes long: what is quickly done keeps the rest.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;

/// A place for every second processor, and one at least.
pub fn half_the_machine() -> Arc<Semaphore> {
    let threads = available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((threads / 2).max(1)))
}
