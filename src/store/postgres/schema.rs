//! The tables: made by migrations, which only go forward.

use super::transaction::Tx;
use super::{Database, OpenError};
use crate::store::{Result, StoreError};

/// The migrations, the first one first. Each raises the version of the schema by one.
const MIGRATIONS: [&str; 1] = [include_str!("schema/1.sql")];

impl Database {
    /// Brings the tables to the version of this program. Several servers may do so at once.
    ///
    /// # Errors
    /// If a later version of this program has changed them, or the database does not answer in time.
    pub(super) async fn migrate(&self) -> Result<(), OpenError> {
        loop {
            let version = self.read(|session| async move { version(&session).await }).await?;
            let Some(next) = MIGRATIONS.get(version) else {
                return match version == MIGRATIONS.len() {
                    true => Ok(()),
                    false => Err(OpenError::Newer { found: version, known: MIGRATIONS.len() }),
                };
            };
            let migrated = self.scan(|session| async move { migrate(&session, version, next).await }).await;
            // Another server may have been faster; then the version has changed.
            let now = self.read(|session| async move { self::version(&session).await }).await?;
            if now == version {
                migrated?;
            }
        }
    }

    /// Checks that the tables have the version of this program.
    pub(super) async fn check_version(&self) -> Result<(), OpenError> {
        let known = MIGRATIONS.len();
        match self.read(|session| async move { version(&session).await }).await? {
            0 => Err(OpenError::Empty),
            found if found < known => Err(OpenError::Older),
            found if found > known => Err(OpenError::Newer { found, known }),
            _ => Ok(()),
        }
    }
}

/// The version of the schema; 0 in an empty database.
async fn version(session: &Tx) -> Result<usize> {
    let table = "SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'settings'";
    if session.query_opt(table, &[]).await?.is_none() {
        return Ok(0);
    }
    let row = session.query_opt("SELECT value FROM settings WHERE name = 'schema'", &[]).await?;
    let unknown = || StoreError::Undecodable("the version of the schema".to_owned());
    let Some(row) = row else { return Ok(0) };
    let value: Vec<u8> = row.try_get(0).map_err(|_type| unknown())?;
    std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok()).ok_or_else(unknown)
}

async fn migrate(session: &Tx, version: usize, migration: &str) -> Result<()> {
    let record = match version {
        0 => "INSERT INTO settings (name, value) VALUES ('schema', '1')".to_owned(),
        _ => format!("UPDATE settings SET value = '{}' WHERE name = 'schema'", version + 1),
    };
    let migrated = session.run(&format!("BEGIN; {migration}; {record}; COMMIT")).await;
    if migrated.is_err() {
        session.run("ROLLBACK").await?;
    }
    migrated
}
