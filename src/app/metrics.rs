//! The server's metrics, with the figures that the store keeps.

use std::collections::BTreeMap;

use super::{Accepted, App, Result, Session};
use crate::clock::Timestamp;
use crate::domain::integration::IntegrationType;
use crate::domain::submission::SubmissionStatus;
use crate::domain::workspace::Scope;
use crate::metrics::Metrics;
use crate::store;

/// Adds the series whose labels are known, with zeros: the first event is a change too.
pub(super) fn add_series(metrics: &Metrics) {
    for result in ["accepted", "replayed", "rejected", "failed"] {
        metrics.submissions.with_label_values(&[result]);
    }
    for kind in IntegrationType::ALL {
        for result in ["delivered", "retried", "dead", "canceled", "skipped"] {
            metrics.deliveries.with_label_values(&[kind.name(), result]);
        }
    }
}

/// Counts a submission by its result: `rejected` is the client's matter, `failed` the server's.
pub(super) fn count_submission(metrics: &Metrics, result: &Result<Accepted>) {
    let result = match result {
        Ok(accepted) if accepted.replayed => "replayed",
        Ok(accepted) if accepted.submission.status == SubmissionStatus::Quarantined => "quarantined",
        Ok(_) => "accepted",
        Err(error) if error.problem.status < 500 => "rejected",
        Err(_) => "failed",
    };
    metrics.submissions.with_label_values(&[result]).inc();
}

/// Counts a batch of which some submissions were accepted.
pub(super) fn count_batch(metrics: &Metrics, submissions: usize, accepted: usize) {
    let rejected = submissions.saturating_sub(accepted);
    for (result, count) in [("accepted", accepted), ("rejected", rejected)] {
        metrics.submissions.with_label_values(&[result]).inc_by(count as u64);
    }
}

impl Session {
    pub async fn render_metrics(&self) -> Result<String> {
        self.require_unlimited_scope(Scope::Operator)?;
        Ok(self.app.render_metrics().await)
    }
}

impl App {
    /// Returns the metrics as text. Figures of a store that cannot be read now stay as they were.
    pub async fn render_metrics(&self) -> String {
        let metrics = &self.metrics;
        if let Ok(usage) = self.store.usage().await {
            metrics.journal_bytes.set(usage.journal_bytes as f64);
            metrics.index_bytes.set(usage.index_bytes as f64);
            metrics.free_bytes.set(usage.free_bytes.map_or(f64::NAN, |bytes| bytes as f64));
        }
        if let Some(at) = self.verified_at() {
            metrics.verified.set(at.millis() as f64 / 1_000.0);
        }
        let _stale_if_unavailable = self.set_delivery_figures(self.now()).await;
        metrics.render()
    }

    /// Sets the figures of deliveries. The store counts them, so the cost is that of reading the forms.
    async fn set_delivery_figures(&self, now: Timestamp) -> store::Result<()> {
        let mut pending = BTreeMap::from(IntegrationType::ALL.map(|kind| (kind.name(), 0)));
        let (mut paused, mut oldest) = (0, now);
        for workspace in self.store.list_workspaces().await? {
            for (kind, stats) in self.store.delivery_stats(workspace.id, now).await? {
                *pending.entry(kind).or_default() += stats.pending + stats.in_flight;
                paused += stats.paused_integrations;
                oldest = stats.oldest_due_at.map_or(oldest, |due| oldest.min(due));
            }
        }
        for (kind, count) in pending {
            self.metrics.deliveries_pending.with_label_values(&[kind]).set(count as f64);
        }
        self.metrics.integrations_paused.set(paused as f64);
        self.metrics.oldest_due.set((now.millis() - oldest.millis()) as f64 / 1_000.0);
        Ok(())
    }
}
