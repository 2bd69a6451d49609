//! Store in a database: PostgreSQL, and what speaks its protocol.
//!
//! A step is a transaction, whose rows are locked as they are read; see `schema/1.sql` for the tables and their locks. Only what
//! all databases of the protocol know is used: no sequences, advisory locks, notifications, `jsonb` or temporary tables.
//!
//! Any number of servers may use one database. Nothing is kept in memory that another server could change, but compiled rows
//! that are compared with the database whenever they are used.

mod batcher;
mod cached_rows;
mod connection;
mod counters;
mod events;
mod form_search;
mod forms;
mod idempotency;
mod keys;
mod purges;
mod schema;
mod stubs;
mod submission_insert;
mod submission_search;
mod submissions;
mod traces;
mod transaction;
mod values;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use deadpool_postgres::Pool;
use tokio::sync::Mutex;

use self::batcher::Batcher;
use self::cached_rows::CachedRows;
use self::counters::SHARDS;
use self::stubs::queues;
use self::submission_insert::{QueuedSubmission, insert_queued};
use crate::cpu_pool::CpuPool;
use crate::domain::form::Form;
use crate::domain::workspace::ApiKey;
use crate::id::{FormRef, Random, SubmissionId};
use crate::secret::KeyId;
use crate::store::{StepResult, StoreError};

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
    database: Database,
    batchers: Arc<Batchers>,
}

/// The connections, and what this process keeps beside the database.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    context: Arc<Context>,
}

struct Context {
    random: Arc<dyn Random>,
    /// Where filters are evaluated.
    pool: CpuPool,
    cached: CachedRows,
    /// The row of a form's counters that this server adds submissions to, so that servers do not wait for each other.
    shard: i16,
    /// See [`submission_insert`].
    latest_id: AtomicI64,
    /// Held by the one task of this server that erases rows of purged forms.
    purging: Mutex<()>,
}

/// What many requests need at the same time.
struct Batchers {
    keys: Batcher<KeyId, Option<Arc<ApiKey>>>,
    forms: Batcher<FormRef, Option<Arc<Form>>>,
    submissions: Batcher<QueuedSubmission, StepResult<SubmissionId>>,
}

impl Deref for PostgresStore {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl PostgresStore {
    /// Opens the store in the database at `url`, and creates its tables if they are missing.
    pub async fn open(url: &str, pool: CpuPool, random: Arc<dyn Random>) -> Result<Self, OpenError> {
        let connections = connection::new_pool(url)?;
        let mut lot = [0; 8];
        random.fill(&mut lot);
        let shard = (u64::from_be_bytes(lot) % SHARDS.unsigned_abs() as u64) as i16;
        let (cached, latest_id) = (CachedRows::default(), AtomicI64::new(i64::MIN));
        let database = Database {
            pool: connections,
            context: Arc::new(Context { random, pool, cached, shard, latest_id, purging: Mutex::default() }),
        };
        database.migrate().await?;
        let batchers = Arc::new(Batchers::new(&database));
        let store = Self { database, batchers };
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

impl Context {
    fn wake(&self) {}
}

impl Batchers {
    fn new(database: &Database) -> Self {
        let [keys, forms, submissions] = [(); 3].map(|()| database.clone());
        Self {
            keys: Batcher::new(move |ids: Vec<KeyId>| {
                let database = keys.clone();
                async move {
                    let (context, ids) = (&*database.context, &ids);
                    database.read(|tx| async move { cached_rows::keys(&tx, context, ids).await }).await
                }
            }),
            forms: Batcher::new(move |wanted: Vec<FormRef>| {
                let database = forms.clone();
                async move {
                    let (context, wanted) = (&*database.context, &wanted);
                    database.read(|tx| async move { cached_rows::forms(&tx, context, wanted).await }).await
                }
            }),
            submissions: Batcher::new(move |queued: Vec<QueuedSubmission>| {
                let database = submissions.clone();
                async move {
                    let (context, queued) = (&*database.context, &queued);
                    database.write(|tx| async move { insert_queued(&tx, context, queued).await }).await
                }
            }),
        }
    }
}
