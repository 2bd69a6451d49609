//! Deliveries: listing them, sending them again, canceling them.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::{ApiError, IdempotentRequest, ReplayableBody, Result, Session, integrations, into_result};
use crate::api::{Code, DeliveryCount, DeliveryDetail, DeliveryList, DeliveryStats, DeliveryTypeStats};
use crate::domain::delivery::DeliveryStatus;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::selection::DeliverySelection;
use crate::domain::form::admission::Refusal;
use crate::domain::workspace::Scope;
use crate::id::{DeliveryId, IntegrationId};
use crate::store::{DeliveryFilter, FormDelivery, IdempotentOperation, StepResult};

/// Maximum deliveries that one request changes.
const MAX_BULK: usize = 10_000;

/// Deliveries that a bulk operation finds together, and changes at the same time.
const BULK_PAGE: usize = 500;

/// Time after which a bulk operation searches no further.
const SEARCH_TIME: Duration = Duration::from_secs(10);

impl Session {
    /// Lists deliveries, newest event first.
    pub async fn list_deliveries(
        &self,
        selection: DeliverySelection,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<DeliveryList> {
        self.require_scope(Scope::Read)?;
        let filter = self.delivery_filter(selection).await?;
        let cursors = self.cursors(format!("deliveries {} {filter:?}", self.caller.workspace)).await?;
        let after = cursors.read(cursor)?;
        let page = self.store.list_deliveries(self.caller.workspace, &filter, after, limit).await?;
        let deliveries =
            page.rows.iter().map(|(form, delivery)| DeliveryDetail::new(delivery, form)).collect();
        Ok(DeliveryList { deliveries, next_cursor: page.next.map(|position| cursors.write(&position)) })
    }

    /// Resolves the names in `selection`. An id may be that of an integration that was deleted.
    async fn delivery_filter(&self, selection: DeliverySelection) -> Result<DeliveryFilter> {
        let DeliverySelection { form, integration, submission, status, since, until, .. } = selection;
        let form_id = match &form {
            Some(form) => Some(self.form_id(form).await?),
            None => None,
        };
        let integration = match (integration, &form) {
            (None, _) => None,
            (Some(name), Some(form)) if name.parse::<IntegrationId>().is_err() => {
                Some(integrations::find(&*self.form(form).await?, &name)?.id)
            }
            (Some(id), _) => id.parse().ok(),
        };
        let forms = self.caller.forms.clone();
        Ok(DeliveryFilter { form: form_id, forms, integration, submission, status, since, until })
    }

    pub async fn get_delivery(&self, id: &str) -> Result<DeliveryDetail> {
        self.require_scope(Scope::Read)?;
        let (form, delivery) = self.delivery(id).await?;
        Ok(DeliveryDetail::new(&delivery, &form))
    }

    /// Finds a delivery that the caller's key may be used for, with its form, which may be in the trash.
    async fn delivery(&self, id: &str) -> Result<FormDelivery> {
        let found = match id.parse() {
            Ok(id) => self.store.find_delivery(self.caller.workspace, id).await?,
            Err(_) => None,
        };
        let visible = found.filter(|(form, _)| self.caller.may_use(form.id));
        visible.ok_or_else(|| ApiError::not_found(Code::DeliveryNotFound, id))
    }

    /// Lists the attempts of a delivery, oldest first.
    pub async fn list_attempts(&self, id: &str) -> Result<Vec<Attempt>> {
        self.require_scope(Scope::Read)?;
        let (_, delivery) = self.delivery(id).await?;
        Ok(self.store.list_attempts(&delivery).await?)
    }

    /// Returns the exact body that a delivery sends, JSON.
    pub async fn get_delivery_event(&self, id: &str) -> Result<Vec<u8>> {
        self.require_scope(Scope::Read)?;
        let (form, delivery) = self.delivery(id).await?;
        let body = self.deliveries.event_body(&form, &delivery).await?;
        body.ok_or_else(|| {
            let detail = match delivery.status {
                DeliveryStatus::Skipped => "a delivery that was skipped has no body",
                _ => "the delivery has no body any more: its submission or form was erased",
            };
            ApiError::with_detail(Code::DeliveryNotFound, detail)
        })
    }

    pub async fn change_delivery(
        &self,
        id: &str,
        change: ManualChange,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayableBody> {
        self.require_scope(Scope::Write)?;
        let (form, delivery) = self.delivery(id).await?;
        let delivery = delivery.id();
        let operation = match change {
            ManualChange::Redeliver { .. } => IdempotentOperation::Redeliver(delivery),
            ManualChange::Cancel => IdempotentOperation::CancelDelivery(delivery),
        };
        let idempotency_key = request.idempotency_key(&self.caller, operation);
        let work = async {
            let step =
                self.store.change_delivery(self.caller.workspace, delivery, change, self.now()).await?;
            let (delivery, _) = into_result(step, Code::DeliveryNotFound, id)?;
            Ok(DeliveryDetail::new(&delivery, &form))
        };
        self.run_once(idempotency_key, work).await
    }

    /// Changes all deliveries of the selection in the body: by default redelivers those that failed for good, or cancels those
    /// that wait.
    pub async fn change_deliveries(
        &self,
        change: ManualChange,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayableBody> {
        self.require_scope(Scope::Write)?;
        let (operation, has_rate, status) = match change {
            ManualChange::Redeliver { .. } => {
                (IdempotentOperation::RedeliverAll, true, vec![DeliveryStatus::Dead])
            }
            ManualChange::Cancel => {
                let waiting = vec![DeliveryStatus::Pending, DeliveryStatus::Paused];
                (IdempotentOperation::CancelDeliveries, false, waiting)
            }
        };
        let body = self.parse(request.body).await?;
        let mut selection = DeliverySelection::read(&body, has_rate).map_err(Refusal::InvalidBody)?;
        if selection.status.is_empty() {
            selection.status = status;
        }
        let idempotency_key = match selection.dry_run {
            true => None,
            false => request.idempotency_key(&self.caller, operation),
        };
        self.run_once(idempotency_key, self.change_all(selection, change)).await
    }

    /// Changes, or counts, the newest deliveries of `selection`, oldest event first. Those of a page are written together.
    async fn change_all(&self, selection: DeliverySelection, change: ManualChange) -> Result<DeliveryCount> {
        let (dry_run, rate, now) = (selection.dry_run, selection.rate, self.now());
        let filter = self.delivery_filter(selection).await?;
        let (found, has_more) = self.find_all(&filter, change).await?;
        if dry_run {
            return Ok(DeliveryCount { count: found.len() as u64, has_more });
        }
        let numbered: Vec<_> = (0..).zip(found.into_iter().rev()).collect();
        let mut count = 0;
        for page in numbered.chunks(BULK_PAGE) {
            let steps = page.iter().map(|(number, id)| {
                let change = match (change, rate) {
                    (ManualChange::Redeliver { .. }, Some(rate)) => {
                        ManualChange::Redeliver { wait_ms: rate.offset_millis(*number) }
                    }
                    _ => change,
                };
                self.store.change_delivery(self.caller.workspace, *id, change, now)
            });
            let done = try_join_all(steps).await?;
            count += done.iter().filter(|step| matches!(step, StepResult::Done(_))).count() as u64;
        }
        Ok(DeliveryCount { count, has_more })
    }

    /// Finds the deliveries that match `filter` and can be changed, newest event first, and whether there may be more.
    async fn find_all(
        &self,
        filter: &DeliveryFilter,
        change: ManualChange,
    ) -> Result<(Vec<DeliveryId>, bool)> {
        let _permit = self.job_permit().await?;
        let (mut found, mut after, started) = (Vec::new(), None, Instant::now());
        loop {
            let limit = BULK_PAGE.min(MAX_BULK - found.len());
            let page = self.store.list_deliveries(self.caller.workspace, filter, after, limit).await?;
            for (form, delivery) in &page.rows {
                let integration = form.integration(delivery.target.integration);
                if delivery.change(change, integration, self.now()).is_ok() {
                    found.push(delivery.id());
                }
            }
            after = page.next;
            if after.is_none() || found.len() >= MAX_BULK || started.elapsed() >= SEARCH_TIME {
                return Ok((found, after.is_some()));
            }
        }
    }

    pub async fn delivery_stats(&self) -> Result<DeliveryStats> {
        self.require_unlimited_scope(Scope::Read)?;
        let _permit = self.job_permit().await?;
        let types = self.store.delivery_stats(self.caller.workspace, self.now()).await?;
        let types = types.into_iter().map(|(kind, stats)| DeliveryTypeStats {
            kind: kind.to_owned(),
            pending: stats.pending,
            in_flight: stats.in_flight,
            paused: stats.paused,
            dead: stats.dead,
            oldest_due_at: stats.oldest_due_at,
            delivered_24h: stats.delivered,
        });
        Ok(DeliveryStats { types: types.collect() })
    }
}
