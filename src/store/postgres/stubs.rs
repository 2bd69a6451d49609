//! Temporary: what is still to be written.
#![allow(unused_variables, clippy::todo, reason = "temporary")]
use super::PostgresStore;
use super::*;
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::*;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::*;
use crate::domain::form::*;
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::filter::*;
use crate::domain::submission::*;
use crate::id::*;
use crate::store::*;
use async_trait::async_trait;
use std::sync::Arc;

#[async_trait]
impl Deliveries for PostgresStore {
    async fn claim_due(&self, owner: Owner, now: Timestamp, capacity: &mut Capacity<'_>) -> Result<Claims> {
        Ok(Claims::default())
    }

    async fn load_claimed(&self, delivery: &Delivery) -> Result<LoadedDelivery> {
        todo!()
    }

    async fn finish(
        &self,
        queue: QueueId,
        finished: Vec<FinishedAttempt>,
        written: Option<u64>,
        now: Timestamp,
    ) -> Result<Health> {
        todo!()
    }

    fn release(&self, owner: Owner) {
        {}
    }

    fn give_back(&self, queue: QueueId, deliveries: &[Delivery]) {
        todo!()
    }

    async fn due_changed(&self) {
        std::future::pending().await
    }

    async fn permit_confirmation(
        &self,
        delivery: &Delivery,
        mailbox: u64,
        now: Timestamp,
    ) -> Result<ConfirmationPermit> {
        todo!()
    }

    async fn has_integrations(&self) -> Result<bool> {
        Ok(false)
    }

    async fn queue_totals(&self, form: FormRef) -> Result<Vec<QueueTotals>> {
        Ok(Vec::new())
    }

    async fn find_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
    ) -> Result<Option<(Arc<Form>, Delivery)>> {
        todo!()
    }

    async fn list_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows> {
        todo!()
    }

    async fn list_attempts(&self, delivery: &Delivery) -> Result<Vec<Attempt>> {
        todo!()
    }

    async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
        change: ManualChange,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        todo!()
    }

    async fn delivery_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        Ok(Vec::new())
    }

    async fn bring_forward(&self, now: Timestamp) -> Result<()> {
        Ok(())
    }

    fn prune_deliveries(&self, now: Timestamp) -> Result<()> {
        Ok(())
    }
}

pub(super) mod queues {
    use super::super::transaction::Tx;
    use super::*;
    use crate::domain::integration::Integration;
    pub(crate) async fn create(tx: &Tx, form: &Form, earlier: &[Integration]) -> Result<()> {
        Ok(())
    }
    pub(crate) async fn resume(
        tx: &Tx,
        form: FormId,
        integration: IntegrationId,
        now: Timestamp,
    ) -> Result<bool> {
        Ok(false)
    }
}
impl PostgresStore {
    pub(super) fn drop_queue(&self, _: QueueId) {}
    pub(super) fn continue_revival(&self, _: QueueId) {}
}
