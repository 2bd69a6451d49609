//! Turns: whoever wants to do what somebody else does already, with the same submission or form, waits.
//!
//! Whoever edits a submission has one, so that what was checked is still so when it is written. Checking may take long,
//! which is why it is not done in the store's one writer.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// A turn for each last byte of an id: those who name another one seldom wait.
pub(super) struct Turns([Arc<Mutex<()>>; 256]);

impl Turns {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }

    /// Waits for the turn at what has the bytes `id`, in the order of asking; it ends with the guard.
    pub(super) async fn at(&self, id: &[u8]) -> OwnedMutexGuard<()> {
        let last = id.last().copied().unwrap_or_default();
        Arc::clone(&self.0[usize::from(last)]).lock_owned().await
    }
}
