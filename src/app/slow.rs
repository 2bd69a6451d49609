//! Work that takes long: on threads of its own, so that nobody else waits for it.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::{App, AppError};
use crate::store::StoreError;

/// Nanoseconds of work for which it is not worth while to go to another thread.
pub(super) const PATIENCE: usize = 4_000_000;

impl App {
    /// Does `work` on another thread, after all that came to this before: however much there is of it, it takes one
    /// processor.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, AppError> {
        let place = Arc::clone(&self.slow).acquire_owned().await.expect("it is never closed");
        elsewhere(move || {
            // It ends with the work, also where nobody waits for that any more.
            let _place = place;
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
