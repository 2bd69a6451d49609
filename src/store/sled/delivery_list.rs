//! Lists of deliveries.

use std::ops::Bound;

use super::delivery_layout::{self as keys};
use super::engine::tx::KeyRange;
use super::search::{Found, Search};
use super::{SledStore, delivery_rows};
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::id::{DeliveryTarget, EventId, SubmissionId, WorkspaceId};
use crate::store::queue::StoredQueue;
use crate::store::{DeliveryFilter, FormDelivery, Result};

/// A search in the deliveries of a workspace.
pub(super) struct DeliverySearch {
    pub(super) workspace: WorkspaceId,
    pub(super) filter: DeliveryFilter,
}

impl DeliverySearch {
    /// The keys of the events in the time of the filter, before `after`. Events about a submission are not earlier than the
    /// submission. A position of another search begins wherever it points.
    pub(super) fn range(&self, after: Option<Vec<u8>>) -> KeyRange {
        let key = |time: Timestamp| {
            let event = EventId::of_completed(SubmissionId::first_of(time.millis()));
            keys::delivery(self.workspace, event, DeliveryTarget::default())
        };
        let submitted = self.filter.submission.map(|id| Timestamp::from_millis(id.millis()));
        let since = self.filter.since.into_iter().chain(submitted).max();
        let (start, end) = keys::deliveries(self.workspace);
        let start = since.map_or(start, |since| Bound::Included(key(since)));
        let end = after.or_else(|| self.filter.until.map(key)).map_or(end, Bound::Excluded);
        (start, end)
    }

    /// Returns a delivery as readers are shown it, with its form, if it matches the filter.
    fn match_row(&self, store: &SledStore, key: &[u8], body: &[u8]) -> Result<Option<FormDelivery>> {
        let delivery = delivery_rows::decode(key, body)?;
        let filter = &self.filter;
        let is_visible = filter.forms.as_ref().is_none_or(|forms| forms.contains(&delivery.form));
        let matches = is_visible
            && filter.form.is_none_or(|form| form == delivery.form)
            && filter.integration.is_none_or(|integration| integration == delivery.target.integration)
            && filter.submission.is_none_or(|submission| Some(submission) == delivery.submission);
        if !matches {
            return Ok(None);
        }
        let Some(form) = store.form(self.workspace.form(delivery.form))? else { return Ok(None) };
        let shown = store.show(&form, delivery)?;
        let has_status = filter.status.is_empty() || filter.status.contains(&shown.status);
        Ok(has_status.then_some((form, shown)))
    }
}

impl Search for DeliverySearch {
    type Item = FormDelivery;
    type Position = Vec<u8>;

    fn items_per_row(&self) -> Option<usize> {
        None
    }

    fn examine(&self, store: &SledStore, key: &[u8], body: &[u8], found: &mut Found<Self>) -> Result<()> {
        found.take(key.to_vec(), self.match_row(store, key, body)?.map(|row| (row, 0)));
        Ok(())
    }
}

impl SledStore {
    /// Returns a delivery as readers are shown it.
    pub(super) fn show(&self, form: &Form, delivery: Delivery) -> Result<Delivery> {
        let integration = delivery.target.integration;
        let queue = form.reference().queue(integration);
        if delivery.is_waiting() && self.context.claims.is_claimed(queue, &delivery) {
            return Ok(Delivery { status: DeliveryStatus::InFlight, ..delivery });
        }
        let health = StoredQueue::read(&self.reader, (form.id, integration))?.health;
        Ok(delivery.shown(form, &health))
    }
}
