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
use crate::domain::trash::ClockRecord;
use crate::id::*;
use crate::store::*;
use async_trait::async_trait;
use std::sync::Arc;

#[async_trait]
impl Maintenance for PostgresStore {
    fn health(&self) -> StoreHealth {
        StoreHealth::Ready
    }

    async fn signing_key(&self) -> Result<[u8; 32]> {
        todo!()
    }

    async fn clock_record(&self) -> Result<Option<ClockRecord>> {
        todo!()
    }

    async fn put_clock_record(&self, record: ClockRecord) -> Result<()> {
        todo!()
    }

    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize> {
        todo!()
    }

    fn erase_expired_keys(&self, now: Timestamp) {
        todo!()
    }

    async fn snapshot(&self) -> Result<Vec<StoreFile>> {
        todo!()
    }

    fn compact(&self) {
        todo!()
    }

    async fn usage(&self) -> Result<StoreUsage> {
        todo!()
    }

    async fn count_all_submissions(&self) -> Result<u64> {
        todo!()
    }

    async fn verify(&self) -> Result<JournalCheck> {
        todo!()
    }

    fn announce(&self, address: &str) {
        todo!()
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Deliveries for PostgresStore {
    async fn claim_due(&self, owner: Owner, now: Timestamp, capacity: &mut Capacity<'_>) -> Result<Claims> {
        todo!()
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
        todo!()
    }

    fn give_back(&self, queue: QueueId, deliveries: &[Delivery]) {
        todo!()
    }

    async fn due_changed(&self) {
        todo!()
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
        todo!()
    }

    async fn queue_totals(&self, form: FormRef) -> Result<Vec<QueueTotals>> {
        todo!()
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
        todo!()
    }

    async fn bring_forward(&self, now: Timestamp) -> Result<()> {
        todo!()
    }

    fn prune_deliveries(&self, now: Timestamp) -> Result<()> {
        todo!()
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
