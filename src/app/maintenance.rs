//! Hourly maintenance.

use super::App;
use crate::domain::trash::{ClockRecord, cutoff};
use crate::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceOutcome {
    /// Number of forms and submissions erased.
    Erased(usize),
    /// Another server of the store runs it.
    Elsewhere,
    /// The clock has jumped ahead: nothing is erased for `millis` milliseconds of uptime.
    Waiting { millis: i64 },
}

impl App {
    /// Runs maintenance, at the start and every hour: erases expired idempotency records, makes deliveries due that a clock set back
    /// delays, and, unless the clock has jumped ahead, erases deliveries that ended long ago, objects that have been in the trash
    /// for more than `days`, submissions at the age that their form sets, and the files of forms that were.
    pub async fn maintain(&self, days: u32) -> Result<MaintenanceOutcome, StoreError> {
        if !self.store.lead_maintenance().await? {
            return Ok(MaintenanceOutcome::Elsewhere);
        }
        self.store.erase_expired_keys(self.now());
        let record = ClockRecord::next(self.store.clock_record().await?, self.now());
        self.store.put_clock_record(record).await?;
        self.store.bring_forward(self.now()).await?;
        let outcome = match record.wait_millis {
            0 => {
                self.store.prune_deliveries(self.now()).await?;
                MaintenanceOutcome::Erased(self.erase_expired().await? + self.empty_trash(days).await?)
            }
            millis => MaintenanceOutcome::Waiting { millis },
        };
        self.deliveries.remove_erased_files().await;
        Ok(outcome)
    }

    /// Erases the forms and submissions that have been in the trash for more than `days`; returns their number.
    pub async fn empty_trash(&self, days: u32) -> Result<usize, StoreError> {
        self.store.empty_trash(cutoff(self.now(), days)).await
    }
}
