//! Store in a database: PostgreSQL, and what speaks its protocol.
//!
//! A step is a transaction, whose rows are locked as they are read; see `schema/1.sql` for the tables and their locks. Only what
//! all databases of the protocol know is used: no sequences, advisory locks, notifications, `jsonb` or temporary tables.
//!
//! Any number of servers may use one database. Nothing is kept in memory that another server could change, but compiled rows
//! that are compared with the database whenever they are used.

mod attempts;
mod batcher;
mod cached_rows;
mod claims;
mod confirmations;
mod connection;
mod counters;
mod deliveries;
mod delivery_list;
mod delivery_rows;
mod events;
mod form_search;
mod forms;
mod idempotency;
mod keys;
mod maintenance;
mod purges;
mod queues;
mod records;
mod schema;
mod search;
mod submission_insert;
mod submission_search;
mod submissions;
mod tasks;
mod traces;
mod transaction;
mod values;
mod verify;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use deadpool_postgres::Pool;
use tokio::sync::{Mutex, watch};

use self::batcher::Batcher;
use self::cached_rows::CachedRows;
use self::claims::DueSignal;
use self::counters::SHARDS;
use self::submission_insert::QueuedSubmission;
use self::tasks::Tasks;
use crate::cpu_pool::CpuPool;
use crate::domain::form::Form;
use crate::domain::workspace::ApiKey;
use crate::id::{FormRef, Random, SubmissionId};
use crate::secret::{KeyId, SystemRandomness};
use crate::store::{StepResult, StoreError, StoreHealth};

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
    #[error("the database has no tables of this program; `forms serve` makes them")]
    Empty,
    #[error(
        "the tables of the database are those of an earlier version of this program; `forms serve` brings them up to date"
    )]
    Older,
    /// For instance because the password is wrong.
    #[error("the database refuses: {0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store in a database. Cheap to clone; all clones share one pool of connections.
#[derive(Clone)]
pub struct PostgresStore {
    database: Database,
    batchers: Arc<Batchers>,
    /// The operator's waits between attempts of deliveries, in milliseconds.
    retry_schedule: Option<Arc<[i64]>>,
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
    due: DueSignal,
    /// The row of a form's counters that this server adds submissions to, so that servers do not wait for each other.
    shard: i16,
    /// Tells this server from others that hold leases.
    server: i64,
    health: watch::Sender<StoreHealth>,
    tasks: Tasks,
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
        let database = Database::connect(url, pool, random)?;
        database.migrate().await.map_err(refused)?;
        let store = Self { batchers: Arc::new(Batchers::new(&database)), database, retry_schedule: None };
        store.context.tasks.spawn(store.database.clone().watch_health());
        store.resume_purges();
        store.resume_queues();
        Ok(store)
    }

    /// Opens the store in the database at `url` to read it. Nothing is done in the background.
    ///
    /// # Errors
    /// If it does not have the tables of this version of the program.
    pub async fn open_existing(url: &str, pool: CpuPool, random: Arc<dyn Random>) -> Result<Self, OpenError> {
        let database = Database::connect(url, pool, random)?;
        database.check_version().await.map_err(refused)?;
        Ok(Self { batchers: Arc::new(Batchers::new(&database)), database, retry_schedule: None })
    }

    /// Returns the store with the operator's waits between attempts of deliveries, in milliseconds, instead of those of each
    /// kind of integration.
    #[must_use]
    pub fn with_retry_schedule(self, schedule: Option<Vec<i64>>) -> Self {
        Self { retry_schedule: schedule.map(Into::into), ..self }
    }
}

impl Database {
    fn connect(url: &str, pool: CpuPool, random: Arc<dyn Random>) -> Result<Self, OpenError> {
        let mut lot = [0; 8];
        SystemRandomness.fill(&mut lot);
        let context = Context {
            random,
            pool,
            cached: CachedRows::default(),
            due: DueSignal::default(),
            shard: (u64::from_be_bytes(lot) % SHARDS.unsigned_abs() as u64) as i16,
            server: i64::from_be_bytes(lot),
            health: watch::Sender::default(),
            tasks: Tasks::default(),
            latest_id: AtomicI64::new(i64::MIN),
            purging: Mutex::default(),
        };
        Ok(Self { pool: connection::new_pool(url)?, context: Arc::new(context) })
    }
}

/// Distinguishes what the database refuses from what it could not answer.
fn refused(error: OpenError) -> OpenError {
    let OpenError::Store(StoreError::Io(cause)) = &error else { return error };
    let refusal = cause.get_ref().and_then(|cause| cause.downcast_ref::<tokio_postgres::Error>());
    match refusal.and_then(tokio_postgres::Error::as_db_error) {
        Some(refusal) => OpenError::Refused(refusal.message().to_owned()),
        None => OpenError::Refused(transaction::with_causes(cause)),
    }
}

impl Batchers {
    fn new(database: &Database) -> Self {
        Self {
            keys: Batcher::new(database, |_| 0, Database::read_keys),
            forms: Batcher::new(database, |_| 0, Database::read_forms),
            submissions: Batcher::new(database, QueuedSubmission::size, Database::insert_submissions),
        }
    }
}
