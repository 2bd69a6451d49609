//! Deliveries in the database.

use std::sync::Arc;

use async_trait::async_trait;

use super::delivery_list::show;
use super::delivery_rows::{self, StoredDelivery};
use super::{PostgresStore, cached_rows, confirmations, events, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::id::{DeliveryId, FormRef, WorkspaceId};
use crate::store::json::from_json;
use crate::store::step::Stop;
use crate::store::{
    Capacity, Claims, ConfirmationPermit, Deliveries, DeliveryFilter, DeliveryRows, FinishedAttempt,
    LoadedDelivery, Owner, QueueId, QueueTotals, Result, StepResult, TypeStats,
};

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
        self.finish_attempts(queue, &finished, now).await
    }

    async fn release(&self, owner: Owner) {
        // The owner stays: an attempt that was cut off may have been carried out.
        let sql = "UPDATE deliveries SET leased_until = NULL WHERE owner = $1";
        let owner = owner.cast_signed();
        match self.write(|tx| async move { tx.execute(sql, &[&owner]).await }).await {
            Ok(_) => self.context.wake(),
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
        let sql = "SELECT 1 FROM queues LIMIT 1";
        Ok(self.read(|tx| async move { tx.query_opt(sql, &[]).await }).await?.is_some())
    }

    async fn queue_totals(&self, form: FormRef) -> Result<Vec<QueueTotals>> {
        self.totals(form).await
    }

    async fn find_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
    ) -> Result<Option<(Arc<Form>, Delivery)>> {
        let context = &*self.context;
        self.read(|tx| async move {
            let Some(found) = delivery_rows::find(&tx, workspace, delivery, "").await? else {
                return Ok(None);
            };
            Ok(show(&tx, context, workspace, vec![found]).await?.pop().flatten())
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
        self.search_deliveries(workspace, filter, after, limit).await
    }

    async fn list_attempts(&self, delivery: &Delivery) -> Result<Vec<Attempt>> {
        let Delivery { form, event, target, .. } = delivery;
        let sql = "SELECT data FROM attempts WHERE form = $1 AND event = $2 AND target = $3 ORDER BY number";
        let rows = self.read(|tx| async move { tx.query(sql, &[form, event, target]).await }).await?;
        rows.iter().map(|row| from_json("an attempt", row.get::<_, &str>(0).as_bytes())).collect()
    }

    async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
        change: ManualChange,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        let context = &*self.context;
        let changed = self
            .step(|tx| async move {
                let found = delivery_rows::find(&tx, workspace, delivery, " FOR UPDATE").await?;
                let StoredDelivery { delivery, is_claimed, .. } = found.ok_or(Stop::Missing)?;
                let form = cached_rows::form(&tx, context, workspace.form(delivery.form)).await?;
                let form = form.ok_or(Stop::Missing)?;
                let integration = form.integration(delivery.target.integration);
                if is_claimed && delivery.is_waiting() {
                    let in_flight = Delivery { status: DeliveryStatus::InFlight, ..delivery };
                    return Ok(in_flight.change(change, integration, now)?);
                }
                let changed = delivery.change(change, integration, now)?;
                delivery_rows::update(&tx, workspace, &[(changed.clone(), None)]).await?;
                let queue = queues::read(&tx, form.id, changed.target.integration).await?;
                Ok(changed.shown(&form, &queue.health))
            })
            .await?;
        self.context.wake();
        Ok(changed)
    }

    async fn delivery_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        self.stats(workspace, now).await
    }

    async fn bring_forward(&self, now: Timestamp) -> Result<()> {
        self.bring_all_forward(now).await
    }

    async fn prune_deliveries(&self, now: Timestamp) -> Result<()> {
        self.prune(now).await
    }
}
