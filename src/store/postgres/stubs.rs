//! Temporary: what is still to be written.
#![allow(unused_variables, clippy::todo, reason = "temporary")]
use super::PostgresStore;
use crate::clock::Timestamp;
use crate::domain::trash::ClockRecord;
use crate::store::*;
use async_trait::async_trait;

#[async_trait]
impl Maintenance for PostgresStore {
    fn health(&self) -> StoreHealth {
        StoreHealth::Ready
    }

    async fn signing_key(&self) -> Result<[u8; 32]> {
        todo!()
    }

    async fn clock_record(&self) -> Result<Option<ClockRecord>> {
        todo!()
    }

    async fn put_clock_record(&self, record: ClockRecord) -> Result<()> {
        todo!()
    }

    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize> {
        Ok(self.erase_trashed_forms(cutoff).await? + self.erase_trashed_submissions(cutoff).await?)
    }

    fn erase_expired_keys(&self, now: Timestamp) {
        todo!()
    }

    async fn snapshot(&self) -> Result<Vec<StoreFile>> {
        todo!()
    }

    fn compact(&self) {
        todo!()
    }

    async fn usage(&self) -> Result<StoreUsage> {
        todo!()
    }

    async fn count_all_submissions(&self) -> Result<u64> {
        todo!()
    }

    async fn verify(&self) -> Result<JournalCheck> {
        todo!()
    }

    fn announce(&self, address: &str) {
        todo!()
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
