//! Deliveries in the database.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::counters::{self, Lock};
use super::delivery_list::{count, count_all, examine, position, show, start_of};
use super::delivery_rows::{self, StoredDelivery, last_number, number};
use super::queues::{BATCH, OF_QUEUE, bring_batch, prune_batch};
use super::transaction::Tx;
use super::{PostgresStore, attempts, cached_rows, confirmations, events, queues};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, DeliveryTarget, FormRef, IntegrationId, WorkspaceId};
use crate::store::queue::KEPT_DAYS;
use crate::store::search::{Found, SearchGoal};
use crate::store::step::Stop;
use crate::store::{
    Capacity, Claims, ConfirmationPermit, Deliveries, DeliveryFilter, DeliveryRows, FinishedAttempt,
    FormDelivery, LoadedDelivery, Owner, QueueId, QueueTotals, Result, StatsByType, StepResult, TypeStats,
};

/// Time after which a search ends early.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Rows that are read at once by a search, at least.
const CHUNK: usize = 200;

#[async_trait]
impl Deliveries for PostgresStore {
    async fn claim_due(&self, owner: Owner, now: Timestamp, capacity: &mut Capacity<'_>) -> Result<Claims> {
        self.claim(owner, now, capacity).await
    }

    async fn load_claimed(&self, delivery: &Delivery) -> Result<LoadedDelivery> {
        self.read(|tx| async move { events::load(&tx, delivery).await }).await
    }

    async fn finish(
        &self,
        queue: QueueId,
        finished: Vec<FinishedAttempt>,
        _written: Option<u64>,
        now: Timestamp,
    ) -> Result<Health> {
        let (finished, schedule) = (&finished[..], self.retry_schedule.as_deref());
        // The form is locked before its deliveries, and only for the few attempts that pause the integration.
        let mut is_locked = false;
        loop {
            let step = |tx: Tx| async move {
                if is_locked {
                    counters::lock(&tx, queue.form, Lock::Events).await?;
                }
                let form = cached_rows::form(&tx, queue.workspace.form(queue.form)).await?;
                let found =
                    form.as_deref().and_then(|form| Some((form, form.integration(queue.integration)?)));
                let Some((form, integration)) = found else { return Ok(Health::default()) };
                let schedule = integration.retry_schedule(schedule);
                let sent = attempts::record(&tx, queue, schedule, finished, now).await?;
                attempts::judge(&tx, (form, integration), &sent, is_locked, now).await
            };
            if let StepResult::Done(health) = self.step(step).await? {
                return Ok(health);
            }
            is_locked = true;
        }
    }

    async fn release(&self, owner: Owner) {
        // The owner stays: an attempt that was cut off may have been carried out.
        let sql = "UPDATE deliveries SET leased_until = NULL WHERE owner = $1";
        match self.execute(sql, &[&owner.cast_signed()]).await {
            Ok(_) => self.context.due.wake(),
            Err(error) => tracing::warn!(%error, "deliveries remain claimed for some minutes"),
        }
    }

    async fn due_changed(&self) {
        self.context.due.changed().await;
    }

    async fn permit_confirmation(
        &self,
        delivery: &Delivery,
        mailbox: u64,
        now: Timestamp,
    ) -> Result<ConfirmationPermit> {
        let (form, taken) = (delivery.form, (mailbox, delivery.id()));
        self.write(|tx| async move { confirmations::permit(&tx, form, taken, now).await }).await
    }

    async fn has_integrations(&self) -> Result<bool> {
        Ok(self.query_opt("SELECT 1 FROM queues LIMIT 1", &[]).await?.is_some())
    }

    async fn queue_totals(&self, form: FormRef) -> Result<Vec<QueueTotals>> {
        let Some(found) = self.batchers.forms.ask(form).await? else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT integration, data, (SELECT count(*) FROM deliveries WHERE {OF_QUEUE} AND class < 3),
                 (SELECT count(*) FROM deliveries WHERE {OF_QUEUE} AND class = 3)
             FROM queues WHERE form = $1"
        );
        let mut totals = HashMap::<IntegrationId, QueueTotals>::new();
        for row in self.query(&sql, &[&form.id]).await? {
            let (pending, dead) = (count(&row, 2), count(&row, 3));
            totals.insert(row.get(0), QueueTotals { health: queues::decode(&row, 1)?.health, pending, dead });
        }
        Ok(found.integrations.iter().map(|one| totals.remove(&one.id).unwrap_or_default()).collect())
    }

    async fn find_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
    ) -> Result<Option<FormDelivery>> {
        self.read(|tx| async move {
            let Some(found) = delivery_rows::find(&tx, workspace, delivery, "").await? else {
                return Ok(None);
            };
            Ok(show(&tx, workspace, vec![found]).await?.pop().flatten())
        })
        .await
    }

    async fn list_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows> {
        let until = filter.until.map(|until| position(start_of(until), DeliveryTarget::default()));
        // Longer than any position, and above all of them.
        let mut below = after.or(until).unwrap_or(vec![u8::MAX; 25]);
        let deadline = Instant::now() + MAX_TIME;
        let mut found = Found::new(SearchGoal::Page(limit));
        while !found.is_done() && Instant::now() < deadline {
            let chunk = (limit + 1 - found.len()).max(CHUNK);
            let from = &below;
            let rows = self
                .read(|tx| async move { examine(&tx, workspace, filter, from, chunk as i64).await })
                .await?;
            let is_last = rows.len() < chunk;
            for (position, matching) in rows {
                if !found.take(position, matching.map(|row| (row, 0))) {
                    break;
                }
            }
            if is_last {
                found.end();
            }
            below = found.last().cloned().unwrap_or(below);
        }
        Ok(found.into_page())
    }

    async fn list_attempts(&self, delivery: &Delivery) -> Result<Vec<Attempt>> {
        self.read(|tx| async move { attempts::list(&tx, delivery).await }).await
    }

    async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
        change: ManualChange,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        let changed = self
            .step(|tx| async move {
                let found = delivery_rows::find(&tx, workspace, delivery, " FOR UPDATE").await?;
                let StoredDelivery { delivery, is_claimed, .. } = found.ok_or(Stop::Missing)?;
                let form = cached_rows::form(&tx, workspace.form(delivery.form)).await?;
                let form = form.ok_or(Stop::Missing)?;
                let integration = form.integration(delivery.target.integration);
                if is_claimed && delivery.is_waiting() {
                    let in_flight = Delivery { status: DeliveryStatus::InFlight, ..delivery };
                    return Ok(in_flight.change(change, integration, now)?);
                }
                let changed = delivery.change(change, integration, now)?;
                delivery_rows::update(&tx, workspace, &[(changed.clone(), None)]).await?;
                let state = queues::read(&tx, form.reference().queue(changed.target.integration)).await?;
                Ok(changed.shown(&form, &state.health))
            })
            .await?;
        self.context.due.wake();
        Ok(changed)
    }

    async fn delivery_stats(&self, workspace: WorkspaceId, now: Timestamp) -> Result<StatsByType> {
        let (rows, forms) = self.scan(|tx| async move { count_all(&tx, workspace, now).await }).await?;
        let mut collected = BTreeMap::<&'static str, TypeStats>::new();
        for (row, form) in rows.iter().zip(forms) {
            let Some(form) = form else { continue };
            let Some(integration) = form.integration(row.get(2)) else { continue };
            let is_paused = queues::decode(row, 3)?.health.paused.is_some();
            let [all, claimed, paused, dead, delivered] = [4, 5, 7, 8, 9].map(|at| count(row, at));
            let stats = collected.entry(integration.type_name()).or_default();
            stats.in_flight += claimed;
            stats.paused += paused;
            stats.dead += dead;
            stats.delivered += delivered;
            stats.paused_integrations += u64::from(is_paused);
            if form.deleted_at.is_some() || !integration.enabled || is_paused {
                stats.paused += all - claimed;
                continue;
            }
            stats.pending += all - claimed;
            stats.oldest_due_at =
                stats.oldest_due_at.into_iter().chain(row.get::<_, Option<Timestamp>>(6)).min();
        }
        Ok(collected.into_iter().collect())
    }

    async fn bring_forward(&self, now: Timestamp) -> Result<()> {
        self.resume_queues();
        // In order, only the first ones have had an attempt, and may wait for another.
        let sql = &format!(
            "SELECT workspace, form, integration FROM queues WHERE removed_at IS NULL AND (
                EXISTS (SELECT 1 FROM deliveries WHERE {OF_QUEUE} AND class = 0 AND at > $1)
                OR EXISTS (SELECT 1 FROM deliveries WHERE {OF_QUEUE} AND class = 1 AND at > $1)
                OR EXISTS (SELECT 1 FROM (SELECT due FROM deliveries WHERE {OF_QUEUE} AND class = 1
                    ORDER BY at, event, target LIMIT $2) first WHERE due > $1))"
        );
        let rows = self.scan(|tx| async move { tx.query(sql, &[&now, &BATCH]).await }).await?;
        for queue in rows.iter().map(queues::id) {
            while self.write(|tx| async move { bring_batch(&tx, queue, now).await }).await? {}
        }
        self.context.due.wake();
        Ok(())
    }

    async fn prune_deliveries(&self, now: Timestamp) -> Result<()> {
        for (class, days) in KEPT_DAYS {
            let ended = Timestamp::from_millis(now.millis() - days * DAY_MILLIS);
            for class in number(class)..=last_number(class) {
                let sql = &format!(
                    "SELECT workspace, form, integration FROM queues
                     WHERE EXISTS (SELECT 1 FROM deliveries WHERE {OF_QUEUE} AND class = $1 AND at <= $2)"
                );
                let rows = self.scan(|tx| async move { tx.query(sql, &[&class, &ended]).await }).await?;
                for queue in rows.iter().map(queues::id) {
                    while self.write(|tx| async move { prune_batch(&tx, queue, class, ended).await }).await? {
                    }
                }
            }
        }
        let sql = &format!(
            "DELETE FROM queues WHERE removed_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM deliveries WHERE {OF_QUEUE})"
        );
        self.write(|tx| async move {
            tx.execute(sql, &[]).await?;
            confirmations::erase_expired(&tx, now).await
        })
        .await
    }
}
