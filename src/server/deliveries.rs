//! Deliveries as a part of the server: put together, running beside it, and stopped after it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{ServerError, mail, master_key};
use crate::clock::SystemClock;
use crate::config::Config;
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
    let mut delivery = config.delivery.clone();
    // Each server would write its own.
    delivery.policy.forbids_files = config.store.is_database();
    let mailer = mail::new_mailer(&delivery.mail)?;
    let has_sealed = !delivery.new_master_key && store.has_integrations().await?;
    let vault = master_key::open_vault(config, has_sealed)?;
    let sender = Arc::new(HttpSender::new(delivery.policy.clone(), clock.clone()));
    let settings = DeliverySettings {
        policy: delivery.policy,
        retry_schedule: delivery.retry_schedule,
        exports: config.store.folder().map(|data| data.join("exports")).unwrap_or_default(),
        google: delivery.google,
    };
    let random = Arc::new(SystemRandomness);
    let service = DeliveryService::new(Arc::clone(store), vault, sender, clock.clone(), random, settings);
    Ok(service.with_mailer(mailer))
}

/// Carries out deliveries, unless they are paused, until `stop`; starts again after a panic. Those in progress then are
/// finished, within 17 seconds.
pub(super) async fn run(service: Arc<DeliveryService>, is_paused: bool, stop: CancellationToken) {
    if is_paused {
        tracing::warn!("deliveries are paused: they wait for a start without --pause-deliveries");
        return;
    }
    while !stop.is_cancelled() {
        let running = tokio::spawn(Arc::clone(&service).run(stop.clone().cancelled_owned(), STOP_GRACE));
        if let Err(error) = running.await {
            tracing::error!(%error, "deliveries are started again");
            sleep(RESTART_WAIT).await;
        }
    }
}
