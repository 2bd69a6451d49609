//! The server's metrics, with the figures that the store keeps.

use super::{Accepted, App, Result, Session};
use crate::clock::Timestamp;
use crate::domain::integration::IntegrationType;
use crate::domain::workspace::Scope;
use crate::metrics::Metrics;
use crate::store::{self, TypeStats};

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
        Ok(_) => "accepted",
        Err(error) if error.problem.status < 500 => "rejected",
        Err(_) => "failed",
    };
    metrics.submissions.with_label_values(&[result]).inc();
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
        let (metrics, now) = (&self.metrics, self.now());
        if let Ok(usage) = self.store.usage().await {
            metrics.journal_bytes.set(usage.journal_bytes as f64);
            metrics.index_bytes.set(usage.index_bytes as f64);
            metrics.free_bytes.set(usage.free_bytes as f64);
        }
        if let Ok(stats) = self.all_delivery_stats(now).await {
            let total = |count: fn(&TypeStats) -> u64, kind: Option<&str>| {
                let matching = stats.iter().filter(|(name, _)| kind.is_none_or(|kind| kind == *name));
                matching.map(|(_, stats)| count(stats)).sum::<u64>() as f64
            };
            for kind in IntegrationType::ALL.map(IntegrationType::name) {
                let pending = total(|stats| stats.pending + stats.in_flight, Some(kind));
                metrics.deliveries_pending.with_label_values(&[kind]).set(pending);
            }
            metrics.integrations_paused.set(total(|stats| stats.paused_integrations, None));
            let oldest = stats.iter().filter_map(|(_, stats)| stats.oldest_due_at).min();
            let millis = oldest.map_or(0, |due| now.millis().saturating_sub(due.millis()).max(0));
            metrics.oldest_due.set(millis as f64 / 1_000.0);
        }
        metrics.render()
    }

    /// Returns the statistics of each workspace and type. They are counters, so the cost is that of reading the forms.
    async fn all_delivery_stats(&self, now: Timestamp) -> store::Result<Vec<(&'static str, TypeStats)>> {
        let mut stats = Vec::new();
        for workspace in self.store.list_workspaces().await? {
            stats.extend(self.store.delivery_stats(workspace.id, now).await?);
        }
        Ok(stats)
    }
}
