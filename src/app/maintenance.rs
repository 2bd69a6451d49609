//! Hourly maintenance.

use super::App;
use crate::domain::trash::{ClockRecord, cutoff};
use crate::store::StoreError;

/// Outcome of a round of maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceOutcome {
    /// Number of forms and submissions erased.
    Erased(usize),
    /// The clock has jumped ahead: nothing is erased for `millis` milliseconds of uptime.
    Waiting { millis: i64 },
}

impl App {
    /// Runs maintenance, at the start and every hour: erases expired idempotency records, and, unless the clock has jumped,
    /// deliveries that ended long ago and objects that have been in the trash for more than `days`.
    pub async fn maintain(&self, days: u32) -> Result<MaintenanceOutcome, StoreError> {
        self.store.erase_expired_keys(self.now());
        let record = ClockRecord::next(self.store.clock_record().await?, self.now());
        self.store.put_clock_record(record).await?;
        match record.wait_millis {
            0 => {
                self.store.maintain_deliveries(self.now()).await?;
                self.empty_trash(days).await.map(MaintenanceOutcome::Erased)
            }
            millis => Ok(MaintenanceOutcome::Waiting { millis }),
        }
    }

    /// Erases the forms and submissions that have been in the trash for more than `days`; returns their number.
    pub async fn empty_trash(&self, days: u32) -> Result<usize, StoreError> {
        self.store.empty_trash(cutoff(self.now(), days)).await
    }
}
