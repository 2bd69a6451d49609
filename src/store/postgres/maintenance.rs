//! The store as a whole: its health and size, and maintenance, which one server at a time runs.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::transaction::{NOW, Tx};
use super::{Database, PostgresStore, idempotency};
use crate::clock::Timestamp;
use crate::domain::trash::ClockRecord;
use crate::store::json::{from_json, to_json};
use crate::store::{JournalCheck, Maintenance, Result, StoreError, StoreFile, StoreHealth, StoreUsage};

/// How long a server may run the maintenance without asking again, in milliseconds: it asks every hour.
const LEASE_MILLIS: i64 = 65 * 60_000;

/// Age at which the mark of a transaction is erased, in milliseconds. A transaction is tried for some seconds.
const MARK_MILLIS: i64 = 60 * 60_000;

/// Rows that are erased at once.
const BATCH: i64 = 5_000;

/// Pause between two questions whether the database answers.
const PAUSE: Duration = Duration::from_secs(1);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

#[async_trait]
impl Maintenance for PostgresStore {
    fn health(&self) -> StoreHealth {
        self.context.health.borrow().clone()
    }

    async fn signing_key(&self) -> Result<[u8; 32]> {
        let stored = self.setting("signing_key").await?;
        let stored = stored.ok_or_else(|| StoreError::Missing("the signing key".to_owned()))?;
        stored.try_into().map_err(|_length| StoreError::Undecodable("the signing key".to_owned()))
    }

    async fn lead_maintenance(&self) -> Result<bool> {
        let sql = format!(
            "INSERT INTO leases (name, owner, until) VALUES ('maintenance', $1, {NOW} + $2)
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
             WHERE leases.owner = excluded.owner OR leases.until < {NOW}"
        );
        Ok(self.execute(&sql, &[&self.context.server, &LEASE_MILLIS]).await? == 1)
    }

    async fn clock_record(&self) -> Result<Option<ClockRecord>> {
        let Some(stored) = self.setting("clock").await? else { return Ok(None) };
        let (last, wait_millis) = from_json("the record of the clock", &stored)?;
        Ok(Some(ClockRecord { last, wait_millis }))
    }

    async fn put_clock_record(&self, record: ClockRecord) -> Result<()> {
        let record = &to_json(&(record.last, record.wait_millis))?;
        self.write(|tx| async move { tx.put_setting("clock", record).await }).await
    }

    async fn empty_trash(&self, cutoff: Timestamp) -> Result<usize> {
        Ok(self.erase_trashed_forms(cutoff).await? + self.erase_trashed_submissions(cutoff).await?)
    }

    /// Also erases marks of transactions, and what purges have left: servers that began them may have ended.
    fn erase_expired_keys(&self, now: Timestamp) {
        self.resume_purges();
        let store = self.clone();
        self.context.tasks.spawn(async move {
            let erase = |tx: Tx| async move { idempotency::erase_expired(&tx, now, BATCH).await };
            while store.write(erase).await? > 0 {}
            while store.write(|tx| async move { erase_marks(&tx).await }).await? > 0 {}
            Ok(())
        });
    }

    async fn snapshot(&self) -> Result<Vec<StoreFile>> {
        let why = "this server stores in a database: back it up with pg_dump, and keep the master key apart from it";
        Err(StoreError::Unsupported(why))
    }

    /// Nothing: the database frees the space of what was deleted by itself.
    fn compact(&self) {}

    /// The sizes of tables and indexes; 0 where the database does not know them.
    async fn usage(&self) -> Result<StoreUsage> {
        let sql = "SELECT coalesce(sum(pg_table_size(tables.oid)), 0)::BIGINT, coalesce(sum(pg_indexes_size(tables.oid)), 0)::BIGINT
                   FROM pg_class AS tables JOIN pg_namespace ON pg_namespace.oid = tables.relnamespace
                   WHERE pg_namespace.nspname = current_schema() AND tables.relkind = 'r'";
        let sizes = match self.query_opt(sql, &[]).await {
            Err(StoreError::Io(_)) => None,
            sizes => sizes?,
        };
        let size = |column| sizes.as_ref().and_then(|row| u64::try_from(row.get::<_, i64>(column)).ok());
        Ok(StoreUsage {
            journal_bytes: size(0).unwrap_or(0),
            index_bytes: size(1).unwrap_or(0),
            free_bytes: None,
            is_compacting: false,
            compacted_ago: None,
            erasure_due_in: None,
        })
    }

    async fn count_all_submissions(&self) -> Result<u64> {
        self.count("SELECT coalesce(sum(responses), 0)::BIGINT FROM counters", &[]).await
    }

    async fn verify(&self) -> Result<JournalCheck> {
        self.check().await
    }

    fn announce(&self, _: &str) {}

    async fn close(&self) -> Result<()> {
        self.context.tasks.stop().await;
        let sql = "DELETE FROM leases WHERE name = 'maintenance' AND owner = $1";
        if let Err(error) = self.execute(sql, &[&self.context.server]).await {
            tracing::debug!(%error, "maintenance goes on when the lease of this server ends");
        }
        self.pool.close();
        self.context.health.send_replace(StoreHealth::Stopped("it was closed".to_owned()));
        Ok(())
    }
}

async fn erase_marks(tx: &Tx) -> Result<u64> {
    let sql = format!(
        "DELETE FROM marks WHERE id IN (SELECT id FROM marks WHERE at < {NOW} - $1 ORDER BY at LIMIT $2)"
    );
    tx.execute(&sql, &[&MARK_MILLIS, &BATCH]).await
}

impl Database {
    async fn setting(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT value FROM settings WHERE name = $1";
        Ok(self.query_opt(sql, &[&name]).await?.map(|row| row.get(0)))
    }

    /// Asks the database once a second whether it answers, until the store is closed.
    pub(super) async fn watch_health(self) -> Result<()> {
        loop {
            tokio::time::sleep(PAUSE).await;
            let asked =
                timeout(PATIENCE, self.scan(|session| async move { session.run("SELECT 1").await })).await;
            let health = match asked {
                Ok(Ok(())) => StoreHealth::Ready,
                // All connections are in use: it answers others.
                Ok(Err(StoreError::Overloaded)) => continue,
                Ok(Err(error)) => StoreHealth::Away(error.to_string()),
                Err(_elapsed) => StoreHealth::Away("it does not answer".to_owned()),
            };
            self.set_health(health);
        }
    }

    fn set_health(&self, health: StoreHealth) {
        let is_away = health != StoreHealth::Ready;
        let was_away = self.context.health.send_replace(health.clone()) != StoreHealth::Ready;
        match health {
            StoreHealth::Away(why) if !was_away => tracing::warn!(why, "the database does not answer"),
            _ if was_away && !is_away => tracing::info!("the database answers again"),
            _ => {}
        }
    }
}
