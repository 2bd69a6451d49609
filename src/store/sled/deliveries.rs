//! Deliveries in the embedded store.

use std::sync::Arc;

use async_trait::async_trait;

use super::delivery_list::DeliverySearch;
use super::engine::tx::Direction;
use super::search::SearchGoal;
use super::{SledStore, delivery_layout as keys, events, layout};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::health::Health;
use crate::domain::form::Form;
use crate::id::{DeliveryId, FormId, WorkspaceId};
use crate::store::{
    Capacity, Claims, ConfirmationPermit, Deliveries, DeliveryFilter, DeliveryRows, FinishedAttempt,
    LoadedDelivery, ManualChange, Owner, QueueId, QueueTotals, Result, StepResult, TypeStats,
};

#[async_trait]
impl Deliveries for SledStore {
    async fn claim_due(&self, owner: Owner, now: Timestamp, capacity: &mut Capacity<'_>) -> Result<Claims> {
        self.claim(owner, now, capacity).await
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
        self.finish_attempts(queue, finished, written, now).await
    }

    fn release(&self, owner: Owner) {
        self.context.claims.release(owner);
    }

    fn give_back(&self, queue: QueueId, deliveries: &[Delivery]) {
        self.context.claims.end(queue, deliveries);
        self.context.claims.wake(queue, Timestamp::from_millis(0));
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
        self.take_permit(delivery, mailbox, now).await
    }

    async fn has_integrations(&self) -> Result<bool> {
        Ok(!self.reader.scan(keys::queues(), Direction::Ascending, 1)?.is_empty())
    }

    async fn queue_totals(&self, workspace: WorkspaceId, form: FormId) -> Result<Vec<QueueTotals>> {
        let form = self.form(workspace, form)?;
        form.map_or_else(|| Ok(Vec::new()), |form| self.read_totals(&form))
    }

    async fn find_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
    ) -> Result<Option<(Arc<Form>, Delivery)>> {
        self.find_shown(workspace, delivery)
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
        let rows = self.reader.scan(keys::attempts(delivery), Direction::Ascending, usize::MAX)?;
        rows.iter().map(|(_, body)| layout::from_json("an attempt", body)).collect()
    }

    async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
        change: ManualChange,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        self.change_by_hand(workspace, delivery, change, now).await
    }

    async fn delivery_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        self.scan_on_pool(usize::MAX, move |store| store.collect_stats(workspace, now)).await
    }

    async fn bring_forward(&self, now: Timestamp) -> Result<()> {
        let mut last = None;
        while let Some(queue) = self.next_queue(keys::indexes_after, &mut last)? {
            self.bring_queue_forward(queue, now).await?;
        }
        Ok(())
    }

    fn prune_deliveries(&self, now: Timestamp) -> Result<()> {
        let mut last = None;
        while let Some(queue) = self.next_queue(keys::indexes_after, &mut last)? {
            self.prune_queue(queue, now)?;
        }
        Ok(())
    }
}
