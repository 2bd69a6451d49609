//! A semaphore for each id: with one permit a mutex, with more a bound of what an id may have at a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Semaphores by id, each kept as long as somebody holds a permit or waits for one.
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

#[cfg(test)]
mod tests {
    use super::KeyedSemaphore;

    #[tokio::test]
    async fn an_id_has_its_permits_and_unused_ids_are_forgotten() {
        let semaphores = KeyedSemaphore::new(2);
        for id in 0..3 {
            drop(semaphores.acquire(id).await);
        }
        let _permits = [semaphores.acquire(7).await, semaphores.acquire(7).await];
        let third = semaphores.semaphore(7);
        assert!(third.try_acquire().is_err());
        assert!(semaphores.semaphore(8).try_acquire().is_ok());
        let ids: Vec<_> = semaphores.semaphores.lock().unwrap().keys().copied().collect();
        assert!(ids.contains(&7) && !ids.contains(&0), "{ids:?}");
    }
}
