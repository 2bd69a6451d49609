//! How many of something an id may have at a time: a semaphore for each id, and one for all of which each id has a share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Semaphores by id, with one permit mutexes; each is kept as long as somebody holds a permit or waits for one.
pub struct KeyedSemaphore<Id> {
    permits: usize,
    semaphores: Mutex<HashMap<Id, Weak<Semaphore>>>,
}

impl<Id: Eq + Hash> KeyedSemaphore<Id> {
    /// Creates semaphores with `permits` permits for each id.
    pub fn new(permits: usize) -> Self {
        Self { permits, semaphores: Mutex::default() }
    }

    /// Acquires a permit of `id`, first come first served.
    pub async fn acquire(&self, id: Id) -> OwnedSemaphorePermit {
        self.semaphore(id).acquire_owned().await.expect("the semaphore is never closed")
    }

    fn semaphore(&self, id: Id) -> Arc<Semaphore> {
        let mut semaphores = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        // There are as many as requests, at most.
        semaphores.retain(|_, semaphore| semaphore.strong_count() > 0);
        let known = semaphores.get(&id).and_then(Weak::upgrade);
        let semaphore = known.unwrap_or_else(|| Arc::new(Semaphore::new(self.permits)));
        semaphores.insert(id, Arc::downgrade(&semaphore));
        semaphore
    }
}

/// A semaphore of which one id has at most a quarter of the permits. Nobody waits for long.
pub struct FairSemaphore<Id> {
    all: Arc<Semaphore>,
    shares: KeyedSemaphore<Id>,
    max_wait: Duration,
}

/// A permit of a [`FairSemaphore`], given back when dropped.
pub type FairPermit = [OwnedSemaphorePermit; 2];

impl<Id: Eq + Hash> FairSemaphore<Id> {
    /// Creates a semaphore with `permits` permits, for which nobody waits longer than `max_wait`.
    pub fn new(permits: usize, max_wait: Duration) -> Self {
        let shares = KeyedSemaphore::new(permits.div_ceil(4));
        Self { all: Arc::new(Semaphore::new(permits)), shares, max_wait }
    }

    /// Acquires a permit for `id`, behind those who wait for the same id first. `None` if that takes too long.
    pub async fn acquire(&self, id: Id) -> Option<FairPermit> {
        let acquire = async {
            let own = self.shares.acquire(id).await;
            [own, Arc::clone(&self.all).acquire_owned().await.expect("the semaphore is never closed")]
        };
        timeout(self.max_wait, acquire).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::KeyedSemaphore;

    #[tokio::test]
    async fn unused_ids_are_forgotten() {
        let semaphores = KeyedSemaphore::new(1);
        drop(semaphores.acquire(0).await);
        let _permit = semaphores.acquire(7).await;
        assert!(semaphores.semaphores.lock().unwrap().keys().eq([&7]));
    }
}
