//! The server's metrics, with the figures that the store keeps.

use std::time::Duration;

use super::{Accepted, App, Result, Session};
use crate::domain::integration::IntegrationType;
use crate::domain::workspace::Scope;
use crate::metrics::{Metrics, StoreBytes};

const SUBMISSION_RESULTS: [&str; 4] = ["accepted", "replayed", "rejected", "failed"];

const DELIVERY_RESULTS: [&str; 5] = ["delivered", "retried", "dead", "canceled", "skipped"];

/// Adds the series whose labels are known, with zeros: the first event is a change too.
pub(super) fn add_series(metrics: &Metrics) {
    SUBMISSION_RESULTS.iter().for_each(|result| metrics.count_submissions(result, 0));
    for kind in IntegrationType::ALL {
        DELIVERY_RESULTS.iter().for_each(|result| metrics.count_deliveries(kind.name(), result, 0));
    }
}

/// Counts a submission by its result.
pub(super) fn count_submission(metrics: &Metrics, result: &Result<Accepted>) {
    let result = match result {
        Ok(accepted) if accepted.replayed => "replayed",
        Ok(_) => "accepted",
        Err(error) if error.problem.status < 500 => "rejected",
        Err(_) => "failed",
    };
    metrics.count_submissions(result, 1);
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
        if let Ok(usage) = self.store.usage().await {
            let (journal, index, free) = (usage.journal_bytes, usage.index_bytes, usage.free_bytes);
            self.metrics.set_store(StoreBytes { journal, index, free });
        }
        let now = self.now();
        if let Ok(types) = self.store.all_delivery_stats(now).await {
            for kind in IntegrationType::ALL.map(IntegrationType::name) {
                let stats = types.iter().find(|(name, _)| *name == kind);
                self.metrics.set_pending(kind, stats.map_or(0, |(_, stats)| stats.pending + stats.in_flight));
            }
            let oldest = types.iter().filter_map(|(_, stats)| stats.oldest_due_at).min();
            let waited = oldest.map_or(0, |due| now.millis().saturating_sub(due.millis()));
            let waited = Duration::from_millis(u64::try_from(waited).unwrap_or_default());
            self.metrics.set_queues(waited, types.iter().map(|(_, stats)| stats.paused_integrations).sum());
        }
        self.metrics.render()
    }
}
