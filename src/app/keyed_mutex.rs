//! A mutex for each id.
//!
//! An edit is checked off the store's writer thread, which may take long, and written only if nothing has changed since.
//! Edits of one form or submission are therefore made one after the other: each succeeds at its first try.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError, Weak};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Mutexes by id, each kept as long as somebody holds it or waits for it.
pub(super) struct KeyedMutex<Id>(BlockingMutex<HashMap<Id, Weak<Mutex<()>>>>);

impl<Id> Default for KeyedMutex<Id> {
    fn default() -> Self {
        Self(BlockingMutex::default())
    }
}

impl<Id: Eq + Hash> KeyedMutex<Id> {
    /// Locks `id`, first come first served; released when the guard is dropped.
    pub(super) async fn lock(&self, id: Id) -> OwnedMutexGuard<()> {
        self.mutex(id).lock_owned().await
    }

    fn mutex(&self, id: Id) -> Arc<Mutex<()>> {
        let mut mutexes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // There are as many as requests, at most.
        mutexes.retain(|_, mutex| mutex.strong_count() > 0);
        let mutex = mutexes.get(&id).and_then(Weak::upgrade).unwrap_or_default();
        mutexes.insert(id, Arc::downgrade(&mutex));
        mutex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_mutexes_in_use_are_kept() {
        let mutexes = KeyedMutex::default();
        for id in 0..3 {
            drop(mutexes.lock(id).await);
        }
        let _guard = mutexes.lock(7).await;
        let waiting = mutexes.mutex(7);
        assert!(waiting.try_lock().is_err());
        assert_eq!(mutexes.0.lock().unwrap().keys().collect::<Vec<_>>(), [&7]);
    }
}
