//! Deliveries: listing them, sending them again, canceling them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::keys::invalid;
use super::{
    App, AppError, Idempotent, IdempotentRequest, ListPage, integrations, into_result, no_delivery,
    require_scope, require_unlimited,
};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::delivery::selection::{BulkRequest, DeliverySelection};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::validation::violation::{Rule, Violation};
use crate::domain::workspace::{Caller, Scope};
use crate::id::{DeliveryId, IntegrationId};
use crate::store::{
    DeliveryFilter, IdempotencyKey, IdempotentOperation, ManualChange, StepResult, StoreError, TypeStats,
};

/// A request for a page of the list of deliveries.
#[derive(Debug, Clone)]
pub struct DeliveryListRequest {
    pub selection: DeliverySelection,
    pub cursor: Option<String>,
    /// Maximum number of items.
    pub limit: usize,
}

/// A delivery for output.
#[derive(Debug, Clone)]
pub struct DeliveryView {
    pub delivery: Delivery,
    /// Its form, which may be in the trash.
    form: Option<Arc<Form>>,
}

impl DeliveryView {
    /// The integration, if it still exists.
    pub fn integration(&self) -> Option<&Integration> {
        self.form.as_ref()?.integration(self.delivery.target.integration)
    }

    /// The address that it goes to, or went to, if its integration has addresses.
    pub fn to(&self) -> Option<&str> {
        let recipient = usize::from(self.delivery.target.recipient);
        let current = || self.integration()?.addresses().get(recipient).map(String::as_str);
        let last = self.delivery.to.as_deref();
        if self.delivery.status.is_final() { last.or_else(current) } else { current().or(last) }
    }
}

/// How many deliveries a bulk operation concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkCount {
    pub count: u64,
    /// Whether it stopped before the last.
    pub has_more: bool,
}

/// Maximum deliveries that one request changes.
const MAX_BULK: usize = 10_000;

/// Deliveries that a bulk operation finds together, and changes at the same time.
const BULK_PAGE: usize = 500;

/// Time after which a bulk operation stops between two pages.
const BULK_TIME: Duration = Duration::from_secs(20);

/// Searches that may end early, because they have taken their time, before a bulk operation stops.
const MAX_SLOW_PAGES: usize = 5;

impl App {
    /// Lists deliveries, newest event first.
    pub async fn list_deliveries(
        &self,
        caller: &Caller,
        request: DeliveryListRequest,
    ) -> Result<ListPage<DeliveryView>, AppError> {
        require_scope(caller, Scope::Read)?;
        let DeliveryListRequest { selection, cursor, limit } = request;
        let filter = self.delivery_filter(caller, selection, AppError::InvalidQuery).await?;
        let cursors = self.cursors(format!("deliveries {} {filter:?}", caller.workspace)).await?;
        let after = cursors.read_bytes(cursor.as_deref())?;
        let page = self.store.list_deliveries(caller.workspace, &filter, after, limit).await?;
        let (mut items, mut forms) = (Vec::new(), HashMap::new());
        for delivery in page.rows {
            let form = match forms.get(&delivery.form) {
                Some(known) => Option::clone(known),
                None => {
                    self.store.find_delivery(caller.workspace, delivery.id()).await?.map(|(form, _)| form)
                }
            };
            forms.insert(delivery.form, form.clone());
            items.push(DeliveryView { delivery, form });
        }
        let next = page.next.map(|position| cursors.write(&position));
        Ok(ListPage { items, next, total: None })
    }

    /// Resolves the names in `selection`; `refuse` makes the error for one that is not valid.
    async fn delivery_filter(
        &self,
        caller: &Caller,
        selection: DeliverySelection,
        refuse: fn(Vec<Violation>) -> AppError,
    ) -> Result<DeliveryFilter, AppError> {
        let DeliverySelection { form, integration, submission, status, since, until } = selection;
        let form_id = match &form {
            Some(form) => Some(self.form_id(caller, form).await?),
            None => None,
        };
        let integration = match integration {
            Some(name) => Some(self.integration_id(caller, form.as_deref(), &name, refuse).await?),
            None => None,
        };
        let forms = caller.forms.clone();
        Ok(DeliveryFilter { form: form_id, forms, integration, submission, status, since, until })
    }

    /// Parses `name` as an id, whose integration may have been deleted, or finds the integration of `form`.
    async fn integration_id(
        &self,
        caller: &Caller,
        form: Option<&str>,
        name: &str,
        refuse: fn(Vec<Violation>) -> AppError,
    ) -> Result<IntegrationId, AppError> {
        if let Ok(id) = name.parse() {
            return Ok(id);
        }
        let Some(form) = form else {
            let message = "a name needs the form that it belongs to";
            let violation = Violation::new("/integration", Rule::MissingField, message);
            return Err(refuse(vec![violation.help("add `form`, or use the integration's id")]));
        };
        let form = self.form(caller, form).await?;
        integrations::find(&form, name).map(|integration| integration.id)
    }

    /// Returns one delivery.
    pub async fn get_delivery(&self, caller: &Caller, id: &str) -> Result<DeliveryView, AppError> {
        require_scope(caller, Scope::Read)?;
        self.delivery(caller, id).await
    }

    /// Finds a delivery that the caller's key may be used for.
    async fn delivery(&self, caller: &Caller, id: &str) -> Result<DeliveryView, AppError> {
        let parsed = id.parse().map_err(|_invalid| no_delivery(id))?;
        let found = self.store.find_delivery(caller.workspace, parsed).await?;
        let visible = found.filter(|(form, _)| caller.may_use(form.id));
        let (form, delivery) = visible.ok_or_else(|| no_delivery(id))?;
        Ok(DeliveryView { delivery, form: Some(form) })
    }

    /// Lists the attempts of a delivery, oldest first.
    pub async fn list_attempts(&self, caller: &Caller, id: &str) -> Result<Vec<Attempt>, AppError> {
        require_scope(caller, Scope::Read)?;
        let found = self.delivery(caller, id).await?;
        Ok(self.store.list_attempts(&found.delivery).await?)
    }

    /// Returns the exact body that a delivery sends, JSON.
    pub async fn get_delivery_event(&self, caller: &Caller, id: &str) -> Result<Vec<u8>, AppError> {
        require_scope(caller, Scope::Read)?;
        let DeliveryView { delivery, form } = self.delivery(caller, id).await?;
        let form = form.ok_or_else(|| no_delivery(id))?;
        self.deliveries.event_body(&form, &delivery).await?.ok_or_else(|| no_delivery(id))
    }

    /// Makes a delivery due now. `render` returns the response to record.
    pub async fn redeliver(
        &self,
        caller: &Caller,
        id: &str,
        request: IdempotentRequest<'_>,
        render: impl Fn(&DeliveryView) -> String,
    ) -> Result<Idempotent<DeliveryView>, AppError> {
        let change = ManualChange::Redeliver { wait_ms: 0 };
        self.change_one(caller, id, request, (IdempotentOperation::Redeliver, change), render).await
    }

    /// Cancels a delivery that waits. `render` returns the response to record.
    pub async fn cancel_delivery(
        &self,
        caller: &Caller,
        id: &str,
        request: IdempotentRequest<'_>,
        render: impl Fn(&DeliveryView) -> String,
    ) -> Result<Idempotent<DeliveryView>, AppError> {
        let change = (IdempotentOperation::CancelDelivery as fn(_) -> _, ManualChange::Cancel);
        self.change_one(caller, id, request, change, render).await
    }

    async fn change_one(
        &self,
        caller: &Caller,
        id: &str,
        request: IdempotentRequest<'_>,
        (operation, change): (fn(DeliveryId) -> IdempotentOperation, ManualChange),
        render: impl Fn(&DeliveryView) -> String,
    ) -> Result<Idempotent<DeliveryView>, AppError> {
        require_scope(caller, Scope::Write)?;
        let found = self.delivery(caller, id).await?;
        let delivery = found.delivery.id();
        let idempotency_key = request.idempotency_key(caller, operation(delivery));
        let work = async {
            let step = self.store.change_delivery(caller.workspace, delivery, change, self.now()).await?;
            let (delivery, _) = into_result(step, no_delivery(id))?;
            Ok(DeliveryView { delivery, ..found })
        };
        self.run_once(idempotency_key, work, render).await
    }

    /// Makes all deliveries of the selection in the body due: oldest event first, at its `rate`. `render` returns
    /// the response to record.
    pub async fn redeliver_all(
        &self,
        caller: &Caller,
        request: IdempotentRequest<'_>,
        render: impl Fn(&BulkCount) -> String,
    ) -> Result<Idempotent<BulkCount>, AppError> {
        require_scope(caller, Scope::Write)?;
        let body = self.parse(caller, request.body).await?;
        let bulk = BulkRequest::read_redelivery(&body).map_err(invalid)?;
        let idempotency_key = idempotency_key_of(&bulk, request, caller, IdempotentOperation::RedeliverAll);
        let work = self.change_all(caller, bulk, BulkChange::Redeliver);
        self.run_once(idempotency_key, work, render).await
    }

    /// Cancels all deliveries of the selection in the body that wait. `render` returns the response to record.
    pub async fn cancel_deliveries(
        &self,
        caller: &Caller,
        request: IdempotentRequest<'_>,
        render: impl Fn(&BulkCount) -> String,
    ) -> Result<Idempotent<BulkCount>, AppError> {
        require_scope(caller, Scope::Write)?;
        let body = self.parse(caller, request.body).await?;
        let bulk = BulkRequest::read_cancellation(&body).map_err(invalid)?;
        let idempotency_key =
            idempotency_key_of(&bulk, request, caller, IdempotentOperation::CancelDeliveries);
        let work = self.change_all(caller, bulk, BulkChange::Cancel);
        self.run_once(idempotency_key, work, render).await
    }

    async fn change_all(
        &self,
        caller: &Caller,
        bulk: BulkRequest,
        change: BulkChange,
    ) -> Result<BulkCount, AppError> {
        let BulkRequest { selection, dry_run, rate } = bulk;
        let filter = self.delivery_filter(caller, selection, invalid).await?;
        let started = Instant::now();
        let (found, mut has_more) = self.find_all(caller, &filter, change).await?;
        if dry_run {
            return Ok(BulkCount { count: found.len() as u64, has_more });
        }
        let (mut count, now) = (0, self.now());
        let numbered: Vec<_> = (0..).zip(found.into_iter().rev()).collect();
        for page in numbered.chunks(BULK_PAGE) {
            if started.elapsed() >= BULK_TIME {
                has_more = true;
                break;
            }
            let changes = page.iter().map(|(number, id)| match change {
                BulkChange::Redeliver => {
                    let wait_ms = rate.map_or(0, |rate| rate.offset_millis(*number));
                    (*id, ManualChange::Redeliver { wait_ms })
                }
                BulkChange::Cancel => (*id, ManualChange::Cancel),
            });
            count += self.change_page(caller, changes, now).await?;
        }
        Ok(BulkCount { count, has_more })
    }

    /// Finds the deliveries that match `filter` and can be changed, newest event first, and whether there may be more.
    async fn find_all(
        &self,
        caller: &Caller,
        filter: &DeliveryFilter,
        change: BulkChange,
    ) -> Result<(Vec<DeliveryId>, bool), AppError> {
        let _permit = self.job_permit(caller).await?;
        let (mut found, mut after, mut slow_pages) = (Vec::new(), None, 0);
        loop {
            let limit = BULK_PAGE.min(MAX_BULK - found.len());
            let page = self.store.list_deliveries(caller.workspace, filter, after, limit).await?;
            slow_pages += usize::from(page.rows.len() < limit);
            for delivery in &page.rows {
                if self.may_change(caller, delivery, change).await? {
                    found.push(delivery.id());
                }
            }
            after = page.next;
            if after.is_none() || found.len() >= MAX_BULK || slow_pages >= MAX_SLOW_PAGES {
                return Ok((found, after.is_some()));
            }
        }
    }

    /// Whether the change may have an effect on `delivery`.
    async fn may_change(
        &self,
        caller: &Caller,
        delivery: &Delivery,
        change: BulkChange,
    ) -> Result<bool, AppError> {
        if let BulkChange::Cancel = change {
            return Ok(!delivery.status.is_final());
        }
        let Some(form) = self.store.find_form(caller.workspace, delivery.form).await? else {
            // It is in the trash, and the store decides.
            return Ok(true);
        };
        Ok(form.integration(delivery.target.integration).is_some_and(|one| one.can_repeat(delivery)))
    }

    /// Changes deliveries at the same time, so that the store writes them together. Returns how many were changed.
    async fn change_page(
        &self,
        caller: &Caller,
        changes: impl Iterator<Item = (DeliveryId, ManualChange)>,
        now: Timestamp,
    ) -> Result<u64, AppError> {
        let mut tasks = JoinSet::new();
        for (delivery, change) in changes {
            let (store, workspace) = (Arc::clone(&self.store), caller.workspace);
            tasks.spawn(async move { store.change_delivery(workspace, delivery, change, now).await });
        }
        let mut count = 0;
        while let Some(step) = tasks.join_next().await {
            let step = step.map_err(|panicked| StoreError::Panicked(panicked.to_string()))?;
            count += u64::from(matches!(step?, StepResult::Done(_)));
        }
        Ok(count)
    }

    /// Returns statistics of the workspace's deliveries, by the name of the integration's type.
    pub async fn delivery_stats(&self, caller: &Caller) -> Result<Vec<(&'static str, TypeStats)>, AppError> {
        require_scope(caller, Scope::Read)?;
        require_unlimited(caller)?;
        let _permit = self.job_permit(caller).await?;
        Ok(self.store.delivery_stats(caller.workspace, self.now()).await?)
    }
}

#[derive(Debug, Clone, Copy)]
enum BulkChange {
    Redeliver,
    Cancel,
}

/// Returns the idempotency key of a bulk request; a dry run has none.
fn idempotency_key_of(
    bulk: &BulkRequest,
    request: IdempotentRequest<'_>,
    caller: &Caller,
    operation: IdempotentOperation,
) -> Option<IdempotencyKey> {
    if bulk.dry_run { None } else { request.idempotency_key(caller, operation) }
}
