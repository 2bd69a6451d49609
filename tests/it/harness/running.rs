//! The loop that carries out deliveries.

use std::sync::Arc;
use std::time::Duration;

use forms::delivery::DeliveryService;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Carries out deliveries until it is stopped.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Longer than anything in a test takes.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

    /// Starts the loop, which at its end waits as long as `grace` for requests in progress.
    pub(crate) fn start(service: Arc<DeliveryService>, grace: Duration) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(service.run(async move { drop(stopped.await) }, grace));
        Self { stop, task }
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(Self::TIMEOUT, self.task).await.unwrap().unwrap();
    }
}
