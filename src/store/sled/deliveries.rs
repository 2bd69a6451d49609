//! Deliveries in the embedded store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;

use super::delivery_list::DeliverySearch;
use super::delivery_manage::ManualChange;
use super::delivery_upkeep::{Pruning, QueueRemoval};
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::{SledStore, delivery_attempts, delivery_layout as keys, layout};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::form::Form;
use crate::domain::integration::csv_file::CsvPosition;
use crate::id::{DeliveryId, FormId, WorkspaceId};
use crate::store::{
    AttemptDecision, BegunAttempt, Deliveries, DeliveryFilter, DeliveryPlace, DeliveryRows, DueDelivery,
    FinishedAttempt, NewAttempt, QueueBatch, QueueId, QueueState, QueueTotals, Result, StepResult, TypeStats,
};

/// Wait after a form could not be read.
const READ_BACKOFF: Duration = Duration::from_secs(1);

#[async_trait]
impl Deliveries for SledStore {
    async fn list_queues(&self) -> Result<Vec<(QueueId, Timestamp)>> {
        self.scan_on_pool(usize::MAX, Self::read_queues).await
    }

    async fn has_integrations(&self) -> Result<bool> {
        Ok(!self.reader.scan(keys::queues(), Direction::Ascending, 1)?.is_empty())
    }

    async fn changed_queues(&self) -> Vec<QueueId> {
        loop {
            let (mut queues, mut is_unreadable) = (Vec::new(), false);
            for (workspace, form) in self.changed_forms.take().await {
                match self.enabled_queues(workspace, form) {
                    Ok(of_form) => queues.extend(of_form),
                    Err(error) => {
                        tracing::warn!(%form, %error, "the integrations of a form cannot be listed");
                        self.changed_forms.record(workspace, form);
                        is_unreadable = true;
                    }
                }
            }
            if !queues.is_empty() {
                return queues;
            }
            if is_unreadable {
                sleep(READ_BACKOFF).await;
            }
        }
    }

    async fn load_queue(&self, queue: QueueId, now: Timestamp, limit: usize) -> Result<Option<QueueBatch>> {
        self.load_due(queue, now, limit).await
    }

    async fn begin_attempts(
        &self,
        queue: QueueId,
        attempts: Vec<NewAttempt>,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Vec<BegunAttempt>> {
        let body = |attempt: &NewAttempt| match &attempt.decision {
            AttemptDecision::Send(body) => body.len(),
            _ => 0,
        };
        let kind = WriteKind::for_size(attempts.iter().map(body).sum());
        let context = self.queue_context();
        let work =
            move |tx: &mut Tx<'_>| delivery_attempts::begin(tx, &context, queue, attempts, now, lease_until);
        self.engine.write_as(kind, work).await
    }

    async fn finish_attempts(
        &self,
        queue: QueueId,
        finished: Vec<FinishedAttempt>,
        file: Option<CsvPosition>,
        now: Timestamp,
    ) -> Result<QueueState> {
        let context = self.queue_context();
        let work = move |tx: &mut Tx<'_>| delivery_attempts::finish(tx, &context, queue, finished, file, now);
        let changed_forms = Arc::clone(&self.changed_forms);
        let wake = move |(_, is_paused): &(QueueState, bool)| {
            if *is_paused {
                changed_forms.record(queue.workspace, queue.form);
            }
        };
        let (state, _) = self.engine.write_then(WriteKind::Reclaim, work, wake).await?;
        Ok(state)
    }

    async fn put_file_position(&self, queue: QueueId, file: CsvPosition) -> Result<()> {
        let work = move |tx: &mut Tx<'_>| delivery_attempts::put_file(tx, queue, file);
        self.engine.write(work).await
    }

    fn drop_queue(&self, queue: QueueId) {
        self.engine.background(QueueRemoval { queue, seen: 0 }, QueueRemoval::step);
    }

    async fn resume_queue(&self, queue: QueueId, now: Timestamp) -> Result<()> {
        let context = self.queue_context();
        let work = move |tx: &mut Tx<'_>| delivery_attempts::resume(tx, &context, queue, now);
        if self.write_and_wake(WriteKind::Normal, (queue.workspace, queue.form), work).await? {
            self.continue_revival(queue);
        }
        Ok(())
    }

    async fn queue_totals(&self, workspace: WorkspaceId, form: FormId) -> Result<Vec<QueueTotals>> {
        self.read_totals(workspace, form).await
    }

    async fn find_delivery(&self, workspace: WorkspaceId, delivery: DeliveryId) -> Result<Option<Delivery>> {
        let find = move |store: &Self| match store.find_row(workspace, delivery)? {
            Some(row) => store.show(workspace, row.delivery),
            None => Ok(None),
        };
        self.scan_on_pool(usize::MAX, find).await
    }

    async fn list_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows> {
        self.search_deliveries(DeliverySearch::new(workspace, filter, after.as_deref(), limit)).await
    }

    async fn list_attempts(&self, workspace: WorkspaceId, delivery: DeliveryPlace) -> Result<Vec<Attempt>> {
        let DeliveryPlace { form, event, integration } = delivery;
        if self.form(workspace, form)?.is_none() {
            return Ok(Vec::new());
        }
        let rows =
            self.reader.scan(keys::attempts(form, event, integration), Direction::Ascending, usize::MAX)?;
        rows.iter().map(|(_, body)| layout::from_json("an attempt", body)).collect()
    }

    async fn load_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryPlace,
    ) -> Result<Option<(Arc<Form>, DueDelivery)>> {
        self.read_delivery(workspace, delivery)
    }

    async fn redeliver(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryPlace,
        at: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        self.change_delivery(workspace, delivery, ManualChange::Redeliver(at)).await
    }

    async fn cancel_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryPlace,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>> {
        self.change_delivery(workspace, delivery, ManualChange::Cancel(now)).await
    }

    async fn delivery_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        self.collect_stats(workspace, now).await
    }

    fn prune_deliveries(&self, now: Timestamp) {
        self.engine.background(Pruning::new(now), Pruning::step);
    }
}
