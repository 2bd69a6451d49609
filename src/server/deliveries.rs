//! Deliveries as a part of the server: put together, running beside it, and stopped after it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{ServerError, mail, master_key};
use crate::app::App;
use crate::clock::SystemClock;
use crate::config::{Config, DeliveryConfig};
use crate::delivery::{DeliveryService, DeliverySettings, HttpSender};
use crate::secret::SystemRandomness;
use crate::store::Store;

/// Time for sends in progress when the server stops: as long as one takes at most.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// Wait before deliveries go on after a panic.
const RESTART_WAIT: Duration = Duration::from_secs(1);

/// Puts together what carries out deliveries. Opens the vault, whose key is made if it is missing.
pub(super) async fn new_service(
    config: &Config,
    store: &Arc<dyn Store>,
    clock: &Arc<SystemClock>,
) -> Result<DeliveryService, ServerError> {
    let DeliveryConfig {
        policy,
        retry_schedule,
        master_key_file,
        new_master_key,
        mail,
        google,
        is_paused: _,
    } = config.delivery.clone();
    let mailer = mail::new_mailer(&mail)?;
    let has_sealed = !new_master_key && store.has_integrations().await?;
    let vault = master_key::open_vault(&config.data, master_key_file.as_deref(), has_sealed)?;
    let sender = Arc::new(HttpSender::new(policy.clone(), clock.clone()));
    let settings = DeliverySettings { policy, retry_schedule, exports: config.data.join("exports"), google };
    let random = Arc::new(SystemRandomness::new());
    let service = DeliveryService::new(Arc::clone(store), vault, sender, clock.clone(), random, settings);
    Ok(service.with_mailer(mailer))
}

/// The task that carries out deliveries.
pub(super) struct Deliveries {
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl Deliveries {
    /// Starts to carry out deliveries, unless they are paused.
    pub(super) fn start(app: &App, config: &DeliveryConfig) -> Self {
        let (stop, stopped) = watch::channel(false);
        if config.is_paused {
            tracing::warn!("deliveries are paused: they wait for a start without --pause-deliveries");
            return Self { stop, task: None };
        }
        let task = tokio::spawn(keep_delivering(Arc::clone(&app.deliveries), stopped));
        Self { stop, task: Some(task) }
    }

    /// Begins no more deliveries.
    pub(super) fn begin_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Finishes the deliveries in progress, within 17 seconds.
    pub(super) async fn stop(self) {
        self.begin_stop();
        let Some(task) = self.task else { return };
        if let Err(error) = task.await {
            tracing::error!(%error, "deliveries did not stop");
        }
    }
}

/// Carries out deliveries until `stopped`; starts again after a panic.
async fn keep_delivering(service: Arc<DeliveryService>, stopped: watch::Receiver<bool>) {
    while !*stopped.borrow() {
        let mut stop = stopped.clone();
        let stop = async move {
            // A closed channel stops too.
            let _closed = stop.wait_for(|is_stopped| *is_stopped).await;
        };
        let running = tokio::spawn(Arc::clone(&service).run(stop, STOP_GRACE));
        if let Err(error) = running.await {
            tracing::error!(%error, "deliveries are started again");
            sleep(RESTART_WAIT).await;
        }
    }
}
