//! Work in the background, which ends when the store is closed.

use std::sync::{Mutex, PoisonError};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::store::Result;

#[derive(Default)]
pub(super) struct Tasks {
    stop: CancellationToken,
    running: Mutex<JoinSet<()>>,
}

impl Tasks {
    /// Runs `work` until it ends or is stopped. What it does not finish is continued by maintenance.
    pub(super) fn spawn(&self, work: impl Future<Output = Result<()>> + Send + 'static) {
        let stop = self.stop.clone();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            if let Some(Err(error)) = stop.run_until_cancelled(work).await {
                tracing::warn!(%error, "work in the background was interrupted, and is continued within an hour");
            }
        });
    }

    /// Stops all work, and waits until it has ended.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        let running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.join_all().await;
    }
}
