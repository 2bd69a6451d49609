//! Deliveries in the embedded store.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::delivery_list::DeliverySearch;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::forms::find_cached;
use super::queue::QueueCounts;
use super::row_source::RowSource;
use super::search::SearchGoal;
use super::{
    SledStore, Stop, confirmations, delivery_layout as keys, delivery_queue, delivery_rows, delivery_upkeep,
    events, layout,
};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, FormId, FormRef, WorkspaceId};
use crate::store::queue::StoredQueue;
use crate::store::{
    Capacity, Claims, ConfirmationPermit, Deliveries, DeliveryFilter, DeliveryRows, FinishedAttempt,
    FormDelivery, LoadedDelivery, Owner, QueueId, QueueTotals, Result, Room, StatsByType, StepResult,
    TypeStats,
};

/// Queues that are looked at in one operation.
const QUEUES_AT_ONCE: usize = 32;

#[async_trait]
impl Deliveries for SledStore {
    async fn claim_due(&self, owner: Owner, now: Timestamp, capacity: &mut Capacity<'_>) -> Result<Claims> {
        let (mut wanted, mut full) = (Vec::new(), Vec::new());
        for (due, queue) in self.context.claims.take_due(now) {
            match self.room(queue, capacity) {
                Ok(Some(Room::For(limit))) if limit > 0 => wanted.push((queue, limit)),
                Ok(Some(Room::For(_) | Room::Full)) => full.push((due, queue)),
                Ok(Some(Room::After(at))) => self.context.claims.set_due(queue, at),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(integration = %queue.integration, %error, "deliveries cannot be claimed");
                    self.context.claims.set_due(queue, Timestamp::from_millis(now.millis() + 1_000));
                }
            }
        }
        let mut claims = Claims::default();
        let mut outcome = Ok(());
        for some in wanted.chunks(QUEUES_AT_ONCE) {
            match self.claim_some(owner, now, some).await {
                Ok(batches) => claims.batches.extend(batches),
                Err(error) => {
                    some.iter().for_each(|(queue, _)| self.context.claims.set_due(*queue, now));
                    outcome = Err(error);
                }
            }
        }
        claims.next_due = self.context.claims.next_due();
        claims.has_full = !full.is_empty();
        full.into_iter().for_each(|(due, queue)| self.context.claims.set_due(queue, due));
        match outcome {
            Err(error) if claims.batches.is_empty() => Err(error),
            _ => Ok(claims),
        }
    }

    async fn load_claimed(&self, delivery: &Delivery) -> Result<LoadedDelivery> {
        events::load(&self.reader, delivery.clone())
    }

    async fn finish(
        &self,
        queue: QueueId,
        finished: Vec<FinishedAttempt>,
        written: Option<u64>,
        now: Timestamp,
    ) -> Result<Health> {
        let (context, schedule) = (Arc::clone(&self.context), self.retry_schedule.clone());
        let ended: Vec<_> = finished.iter().map(|attempt| attempt.delivery.clone()).collect();
        let work = move |tx: &mut Tx<'_>| {
            delivery_queue::finish(tx, &context, schedule.as_deref(), queue, finished, written, now)
        };
        let context = Arc::clone(&self.context);
        let done = move |(_, woken): &(Health, Vec<QueueId>)| {
            context.claims.end(queue, &ended);
            for queue in woken {
                context.claims.wake(*queue, Timestamp::from_millis(0));
            }
        };
        Ok(self.engine.write_then(WriteKind::Reclaim, work, done).await?.0)
    }

    async fn release(&self, owner: Owner) {
        self.context.claims.release(owner);
    }

    async fn due_changed(&self) {
        self.context.claims.changed().await;
    }

    async fn permit_confirmation(
        &self,
        delivery: &Delivery,
        mailbox: u64,
        now: Timestamp,
    ) -> Result<ConfirmationPermit> {
        let (form, id) = (delivery.form, delivery.id());
        let work = move |tx: &mut Tx<'_>| confirmations::permit(tx, form, (mailbox, id), now);
        self.engine.write_as(WriteKind::Reclaim, work).await
    }

    async fn has_integrations(&self) -> Result<bool> {
        self.reader.has_any(layout::all(keys::QUEUES))
    }

    async fn queue_totals(&self, form: FormRef) -> Result<Vec<QueueTotals>> {
        let Some(form) = self.form(form)? else { return Ok(Vec::new()) };
        let totals = form.integrations.iter().map(|integration| {
            let queue = (form.id, integration.id);
            let counts = QueueCounts::read(&self.reader, queue)?;
            let health = StoredQueue::read(&self.reader, queue)?.health;
            Ok(QueueTotals { health, pending: counts.pending + counts.paused, dead: counts.dead })
        });
        totals.collect()
    }

    async fn find_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
    ) -> Result<Option<FormDelivery>> {
        let Some(delivery) = delivery_rows::find(&self.reader, workspace, delivery)? else { return Ok(None) };
        let Some(form) = self.form(workspace.form(delivery.form))? else { return Ok(None) };
        let shown = self.show(&form, delivery)?;
        Ok(Some((form, shown)))
    }

    async fn list_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows> {
        let search = DeliverySearch { workspace, filter: filter.clone() };
        let (range, goal) = (search.range(after), SearchGoal::Page(limit));
        Ok(self.search(search, range, Direction::Descending, goal).await?.into_page())
    }

    async fn list_attempts(&self, delivery: &Delivery) -> Result<Vec<Attempt>> {
        if events::is_erased(&self.reader, delivery)? {
            return Ok(Vec::new());
        }
        let rows = self.reader.scan_all(keys::attempts(delivery))?;
        rows.iter().map(|(_, body)| layout::from_json("an attempt", body)).collect()
    }

    async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
        change: ManualChange,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        let Some(found) = delivery_rows::find(&self.reader, workspace, delivery)? else {
            return Ok(StepResult::Missing);
        };
        let form = workspace.form(found.form);
        self.step_and_wake(WriteKind::Normal, form, move |tx, context| {
            let form = find_cached(tx, context, form)?.ok_or(Stop::Missing)?;
            let delivery =
                delivery_rows::read(tx, workspace, found.event, found.target)?.ok_or(Stop::Missing)?;
            let queue = form.reference().queue(found.target.integration);
            let integration = form.integration(queue.integration);
            if context.claims.is_claimed(queue, &delivery) {
                let in_flight = Delivery { status: DeliveryStatus::InFlight, ..delivery };
                return Ok(in_flight.change(change, integration, now)?);
            }
            let changed = delivery.change(change, integration, now)?;
            delivery_rows::replace(tx, workspace, &delivery, &changed)?;
            let health = StoredQueue::read(tx, delivery_rows::queue_of(&changed))?.health;
            Ok(changed.shown(&form, &health))
        })
        .await
    }

    async fn delivery_stats(&self, workspace: WorkspaceId, now: Timestamp) -> Result<StatsByType> {
        self.scan_on_pool(usize::MAX, move |store| {
            let mut collected = BTreeMap::<&'static str, TypeStats>::new();
            for is_trashed in [false, true] {
                let entries = layout::list(workspace, is_trashed, None);
                for (entry, _) in store.reader.scan_all(entries)? {
                    let Some(form) = store.form(workspace.form(layout::last(&entry, FormId::from_bytes)?))?
                    else {
                        continue;
                    };
                    for integration in &form.integrations {
                        let stats = collected.entry(integration.type_name()).or_default();
                        let key = (form.id, integration.id);
                        let queue = form.reference().queue(integration.id);
                        let counts = QueueCounts::read(&store.reader, key)?;
                        let in_flight = (store.context.claims.count(queue) as u64).min(counts.pending);
                        let waiting = counts.pending - in_flight;
                        stats.in_flight += in_flight;
                        stats.paused += counts.paused;
                        stats.dead += counts.dead;
                        stats.delivered += counts.delivered_since_yesterday(now);
                        let health = StoredQueue::read(&store.reader, key)?.health;
                        stats.paused_integrations += u64::from(health.paused.is_some());
                        if form.deleted_at.is_some() || !integration.enabled || health.paused.is_some() {
                            stats.paused += waiting;
                            continue;
                        }
                        stats.pending += waiting;
                        let oldest = store.first_due(queue)?.filter(|_| waiting > 0);
                        stats.oldest_due_at = stats.oldest_due_at.into_iter().chain(oldest).min();
                    }
                }
            }
            Ok(collected.into_iter().collect())
        })
        .await
    }

    async fn bring_forward(&self, now: Timestamp) -> Result<()> {
        for queue in self.queues(keys::QUEUES)? {
            self.bring_queue_forward(queue, now).await?;
            // Until then it may have been due at a time of the later clock, which no row shows.
            if self.first_due(queue)?.is_some() {
                self.context.claims.wake(queue, now);
            }
        }
        Ok(())
    }

    async fn prune_deliveries(&self, now: Timestamp) -> Result<()> {
        for queue in self.queues(keys::INDEX)? {
            self.engine.background(move |tx| delivery_upkeep::prune(tx, queue, now));
        }
        Ok(())
    }
}
