//! Turns at editing: whoever edits a submission that somebody else edits already waits, so that what was checked is
//! still so when it is written. Checking may take long, which is why it is not done in the store's one writer.

use tokio::sync::{Mutex, MutexGuard};

use crate::id::SubmissionId;

/// A turn for each last byte of an id: those who edit other submissions seldom wait.
pub(super) struct Turns([Mutex<()>; 256]);

impl Turns {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    /// Waits for the turn at `submission`, in the order of asking; it ends with the guard.
    pub(super) async fn at(&self, submission: SubmissionId) -> MutexGuard<'_, ()> {
        let [.., last] = submission.to_bytes();
        self.0[usize::from(last)].lock().await
    }
}
