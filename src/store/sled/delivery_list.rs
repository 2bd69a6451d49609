//! Reads of deliveries: one by its id, lists, totals and statistics.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tokio::time::Instant;

use super::delivery_layout::{self as keys};
use super::engine::tx::Direction;
use super::queue::{QueueCounts, StoredQueue};
use super::{SledStore, delivery_rows, layout};
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::id::{DeliveryId, DeliveryTarget, EventId, SubmissionId, WorkspaceId};
use crate::store::{DeliveryFilter, DeliveryRows, QueueId, QueueTotals, Result, TypeStats};

/// Deliveries read at once.
const BATCH: usize = 64;

/// A search in the deliveries of a workspace, newest event first, with its progress.
pub(super) struct DeliverySearch {
    workspace: WorkspaceId,
    filter: DeliveryFilter,
    limit: usize,
    /// Key of the last delivery that was examined.
    after: Option<Vec<u8>>,
    rows: Vec<Delivery>,
    is_done: bool,
    is_end: bool,
}

impl DeliverySearch {
    /// Creates a search after the `next` of an earlier page. A position of another search begins wherever it points.
    pub(super) fn new(
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Self {
        let (filter, rows) = (filter.clone(), Vec::new());
        Self { workspace, filter, limit, after, rows, is_done: false, is_end: false }
    }

    fn into_page(self) -> DeliveryRows {
        let next = self.after.filter(|_| !self.is_end);
        DeliveryRows { rows: self.rows, next }
    }

    fn run(&mut self, store: &SledStore, until: Instant) -> Result<()> {
        let (start, mut end) = self.range();
        while !self.is_done {
            if let Some(after) = &self.after {
                end = Bound::Excluded(after.clone());
            }
            let found = store.reader.scan((start.clone(), end.clone()), Direction::Descending, BATCH)?;
            if found.is_empty() {
                (self.is_done, self.is_end) = (true, true);
            }
            for (key, body) in found {
                if let Some(delivery) = self.examine(store, &key, &body)? {
                    if self.rows.len() == self.limit {
                        self.is_done = true;
                        break;
                    }
                    self.rows.push(delivery);
                }
                self.after = Some(key);
            }
            if Instant::now() >= until {
                break;
            }
        }
        Ok(())
    }

    /// The keys of the events in the time of the filter. Events about a submission are not earlier than the submission.
    fn range(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let key = |time: Timestamp| {
            let event = EventId::of_completed(SubmissionId::first_of(time.millis()));
            keys::delivery(self.workspace, event, DeliveryTarget::default())
        };
        let submitted = self.filter.submission.map(|id| Timestamp::from_millis(id.millis()));
        let since = self.filter.since.into_iter().chain(submitted).max();
        let (start, end) = keys::deliveries(self.workspace);
        let start = since.map_or(start, |since| Bound::Included(key(since)));
        (start, self.filter.until.map_or(end, |until| Bound::Excluded(key(until))))
    }

    /// Returns a delivery as readers are shown it, if it matches the filter.
    fn examine(&self, store: &SledStore, key: &[u8], body: &[u8]) -> Result<Option<Delivery>> {
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
        let Some(form) = store.form(self.workspace, delivery.form)? else { return Ok(None) };
        let shown = store.show(&form, delivery)?;
        Ok(Some(shown).filter(|shown| filter.status.is_empty() || filter.status.contains(&shown.status)))
    }
}

impl SledStore {
    /// Runs a search until its page is full, it is complete, or out of time.
    pub(super) async fn search_deliveries(&self, mut search: DeliverySearch) -> Result<DeliveryRows> {
        let job = self.pool.admit()?;
        loop {
            let store = self.clone();
            search = job.run(move |until| search.run(&store, until).map(|()| search)).await??;
            if search.is_done || job.is_overdue() && search.after.is_some() {
                return Ok(search.into_page());
            }
        }
    }

    /// Finds a delivery as readers are shown it, with its form.
    pub(super) fn find_shown(
        &self,
        workspace: WorkspaceId,
        id: DeliveryId,
    ) -> Result<Option<(Arc<Form>, Delivery)>> {
        let Some(delivery) = delivery_rows::find(&self.reader, workspace, id)? else { return Ok(None) };
        let Some(form) = self.form(workspace, delivery.form)? else { return Ok(None) };
        let shown = self.show(&form, delivery)?;
        Ok(Some((form, shown)))
    }

    /// Returns a delivery as readers are shown it.
    pub(super) fn show(&self, form: &Form, delivery: Delivery) -> Result<Delivery> {
        let integration = delivery.target.integration;
        let queue = QueueId { workspace: form.workspace, form: form.id, integration };
        if delivery.is_waiting() && self.claims.is_claimed(queue, &delivery) {
            return Ok(Delivery { status: DeliveryStatus::InFlight, ..delivery });
        }
        let health = StoredQueue::read(&self.reader, (form.id, integration))?.health;
        Ok(delivery.shown(form, &health))
    }

    pub(super) fn read_totals(&self, form: &Form) -> Result<Vec<QueueTotals>> {
        let totals = |integration: &Integration| {
            let queue = (form.id, integration.id);
            let counts = QueueCounts::read(&self.reader, queue)?;
            let health = StoredQueue::read(&self.reader, queue)?.health;
            Ok(QueueTotals { health, pending: counts.pending + counts.paused, dead: counts.dead })
        };
        form.integrations.iter().map(totals).collect()
    }

    /// Collects the statistics of a workspace, by type of integration.
    pub(super) fn collect_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        let mut collected = BTreeMap::<&'static str, TypeStats>::new();
        for is_trashed in [false, true] {
            let entries = layout::list(workspace, is_trashed, None);
            for (entry, _) in self.reader.scan(entries, Direction::Ascending, usize::MAX)? {
                let Some(form) = self.form(workspace, layout::listed_form(&entry)?)? else { continue };
                for integration in &form.integrations {
                    let stats = collected.entry(integration.type_name()).or_default();
                    self.add_stats(&form, integration, stats, now)?;
                }
            }
        }
        Ok(collected.into_iter().collect())
    }

    fn add_stats(
        &self,
        form: &Form,
        integration: &Integration,
        stats: &mut TypeStats,
        now: Timestamp,
    ) -> Result<()> {
        let key = (form.id, integration.id);
        let queue = QueueId { workspace: form.workspace, form: form.id, integration: integration.id };
        let counts = QueueCounts::read(&self.reader, key)?;
        let in_flight = (self.claims.count(queue) as u64).min(counts.pending);
        let waiting = counts.pending - in_flight;
        stats.in_flight += in_flight;
        stats.paused += counts.paused;
        stats.dead += counts.dead;
        stats.delivered += counts.delivered_since_yesterday(now);
        let health = StoredQueue::read(&self.reader, key)?.health;
        if form.deleted_at.is_some() || !integration.enabled || health.paused.is_some() {
            stats.paused += waiting;
            return Ok(());
        }
        stats.pending += waiting;
        let oldest = self.first_due(queue)?.filter(|_| waiting > 0);
        stats.oldest_due_at = stats.oldest_due_at.into_iter().chain(oldest).min();
        Ok(())
    }
}
