//! Hourly maintenance.

use super::App;
use crate::domain::trash::{ClockRecord, cutoff};
use crate::store::StoreError;

/// The outcome of a round of maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceOutcome {
    /// Number of forms and submissions erased.
    Erased(usize),
    /// The clock has jumped ahead: nothing is erased for `millis` milliseconds of uptime.
    Waiting { millis: i64 },
}

impl App {
    /// Does what is due: at a start, and every hour from then on. Erases expired idempotency keys, and empties the trash of
    /// what has lain there for more than `days`, unless the clock has jumped.
    pub async fn maintain(&self, days: u32) -> Result<MaintenanceOutcome, StoreError> {
        self.store.erase_expired_keys(self.now());
        let record = ClockRecord::next(self.store.clock_record().await?, self.now());
        self.store.put_clock_record(record).await?;
        match record.wait_millis {
            0 => self.empty_trash(days).await.map(MaintenanceOutcome::Erased),
            millis => Ok(MaintenanceOutcome::Waiting { millis }),
        }
    }

    /// Erases the forms and the submissions that have lain in the trash for more than `days`: how many.
    pub async fn empty_trash(&self, days: u32) -> Result<usize, StoreError> {
        self.store.empty_trash(cutoff(self.now(), days)).await
    }
}
