//! The loop that carries out deliveries: claims what is due and starts a task for each send.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::DeliveryService;
use super::dispatch::{DispatchSlot, Dispatcher};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::integration::Integration;
use crate::store::{ClaimedBatch, Claims, Owner, QueueId, Result, StoreHealth};

/// Wait after a failure of the store.
pub(super) const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// Longest sleep: due times are those of the wall clock, which may be set.
const MAX_SLEEP: Duration = Duration::from_secs(30);

impl DeliveryService {
    /// Carries out deliveries until `stop` resolves. Then waits up to `grace` for the sends in progress; those cut off are
    /// given back, as if they had not begun. Only one call may run at a time.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>, grace: Duration) {
        let mut runner = Runner::new(self);
        match AssertUnwindSafe(runner.run(stop)).catch_unwind().await {
            Ok(()) => runner.stop(grace).await,
            Err(panic) => {
                runner.stop(Duration::ZERO).await;
                resume_unwind(panic)
            }
        }
    }

    /// Carries out what is due now, and returns once nothing is left that is due.
    pub async fn run_due(self: Arc<Self>) {
        let mut runner = Runner::new(self);
        runner.start_due().await;
        while runner.tasks.join_next().await.is_some() {
            runner.start_due().await;
        }
        runner.stop(Duration::ZERO).await;
    }
}

struct Runner {
    service: Arc<DeliveryService>,
    owner: Owner,
    dispatcher: Dispatcher,
    tasks: JoinSet<()>,
}

impl Runner {
    fn new(service: Arc<DeliveryService>) -> Self {
        let mut owner = [0; 8];
        service.random.fill(&mut owner);
        let dispatcher = service.dispatcher.clone();
        Self { service, owner: Owner::from_be_bytes(owner), dispatcher, tasks: JoinSet::new() }
    }

    async fn run(&mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            let wait = self.start_due().await;
            tokio::select! {
                biased;
                () = &mut stop => return,
                Some(_) = self.tasks.join_next() => while self.tasks.try_join_next().is_some() {},
                () = self.service.store.due_changed() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Starts all sends that are due and have room. Returns how long to sleep until others are due.
    async fn start_due(&mut self) -> Duration {
        loop {
            let now = self.service.clock.now();
            let (claims, mut slots) = match self.claim(now).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    // A store that is away says so itself, once.
                    if !matches!(self.service.store.health(), StoreHealth::Away(_)) {
                        tracing::warn!(%error, "deliveries cannot be claimed");
                    }
                    return STORE_BACKOFF;
                }
            };
            let mut has_unused = false;
            for batch in claims.batches {
                let unused = self.start(batch, &mut slots);
                has_unused |= unused;
            }
            has_unused |= slots.values().any(|slots| !slots.is_empty());
            // What a queue did not use may be what another one lacked.
            if has_unused && claims.has_full {
                continue;
            }
            let Some(due) = claims.next_due else { return MAX_SLEEP };
            let millis = due.millis().saturating_sub(now.millis());
            return Duration::from_millis(u64::try_from(millis).unwrap_or(0)).min(MAX_SLEEP);
        }
    }

    /// Claims what is due, with the slots that each queue may use.
    async fn claim(&self, now: Timestamp) -> Result<(Claims, HashMap<QueueId, Vec<DispatchSlot>>)> {
        let (dispatcher, mut slots) = (&self.dispatcher, HashMap::<_, Vec<_>>::new());
        let mut capacity = |queue: QueueId, integration: &Integration, health: &Health| {
            dispatcher.reserve(queue, integration, health, now, slots.entry(queue).or_default())
        };
        let claims = self.service.store.claim_due(self.owner, now, &mut capacity).await?;
        Ok((claims, slots))
    }

    /// Starts the sends of a claimed batch. Returns whether the queue did not need all its slots.
    fn start(&mut self, mut batch: ClaimedBatch, slots: &mut HashMap<QueueId, Vec<DispatchSlot>>) -> bool {
        let mut slots = slots.remove(&batch.queue).unwrap_or_default().into_iter();
        let deliveries = std::mem::take(&mut batch.deliveries);
        let mut start = |deliveries: Vec<_>| {
            let Some(slot) = slots.next() else { return };
            let part = ClaimedBatch { deliveries, ..batch.clone() };
            self.tasks.spawn(Arc::clone(&self.service).carry_out(part, slot));
        };
        if batch.integration.is_file() {
            start(deliveries);
        } else {
            deliveries.chunks(batch.integration.pace().batch).for_each(|some| start(some.to_vec()));
        }
        slots.len() > 0
    }

    /// Waits up to `grace` for the sends in progress, and releases what has not ended.
    async fn stop(mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        while let Ok(Some(_)) = timeout_at(deadline, self.tasks.join_next()).await {}
        self.tasks.shutdown().await;
        self.service.store.release(self.owner).await;
    }
}
