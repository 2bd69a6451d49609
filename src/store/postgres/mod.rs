//! Store in a database: PostgreSQL, and what speaks its protocol.
//!
//! A step is a transaction, whose rows are locked as they are read; see `schema/1.sql` for the tables and their locks. Only what
//! all databases of the protocol know is used: no sequences, advisory locks, notifications, `jsonb` or temporary tables.
//!
//! Any number of servers may use one database. Nothing is kept in memory that another server could change, but compiled rows
//! that are compared with the database whenever they are used.

mod connection;
mod counters;
mod form_search;
mod forms;
mod idempotency;
mod keys;
mod purges;
mod schema;
mod stubs;
mod transaction;
mod values;

use std::sync::Arc;

use deadpool_postgres::Pool;
use tokio::sync::Mutex;

use self::stubs::{events, queues, submissions};

use crate::id::Random;
use crate::store::StoreError;

pub use connection::CONNECTIONS;

/// Why a database cannot be used as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the URL of the database cannot be used: {0}")]
    InvalidUrl(String),
    #[error(
        "the tables of the database have version {found}, and this program knows them up to {known}: a later version of it has \
         changed them; use that one"
    )]
    Newer { found: usize, known: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store in a database. Cheap to clone; all clones share one pool of connections.
#[derive(Clone)]
pub struct PostgresStore {
    pool: Pool,
    context: Arc<Context>,
}

struct Context {
    random: Arc<dyn Random>,
    /// Held by the one task of this server that erases rows of purged forms.
    purging: Mutex<()>,
}

impl PostgresStore {
    /// Opens the store in the database at `url`, and creates its tables if they are missing.
    pub async fn open(url: &str, random: Arc<dyn Random>) -> Result<Self, OpenError> {
        let pool = connection::new_pool(url)?;
        let store = Self { pool, context: Arc::new(Context { random, purging: Mutex::default() }) };
        store.migrate().await?;
        store.resume_purges();
        Ok(store)
    }

    /// Runs `work` in the background. What it does not finish is continued by maintenance.
    fn background(&self, work: impl Future<Output = Result<(), StoreError>> + Send + 'static) {
        tokio::spawn(async move {
            if let Err(error) = work.await {
                tracing::warn!(%error, "work in the background was interrupted, and is continued within an hour");
            }
        });
    }
}
