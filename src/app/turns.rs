//! Turns: whoever wants to do what somebody else does already, with the same submission or form, waits.
//!
//! Whoever edits a submission has one, so that what was checked is still so when it is written. Checking may take long,
//! which is why it is not done in the store's one writer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// The turns that somebody has or waits for, by the ids of what they are at.
pub(super) struct Turns<Id>(Mutex<HashMap<Id, Weak<Turn<()>>>>);

impl<Id: Eq + Hash> Turns<Id> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Waits for the turn at what has this id, in the order of asking; it ends with the guard.
    pub(super) async fn at(&self, id: Id) -> OwnedMutexGuard<()> {
        self.turn(id).lock_owned().await
    }

    fn turn(&self, id: Id) -> Arc<Turn<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // As many as there are requests, at most.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = turns.get(&id).and_then(Weak::upgrade).unwrap_or_default();
        turns.insert(id, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_turns_that_somebody_has_are_kept() {
        let turns = Turns::new();
        for id in 0..3 {
            drop(turns.at(id).await);
        }
        let _held = turns.at(7).await;
        let waiting = turns.turn(7);
        assert!(waiting.try_lock().is_err());
        assert_eq!(turns.0.lock().unwrap().keys().collect::<Vec<_>>(), [&7]);
    }
}
