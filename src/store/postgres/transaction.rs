//! Transactions: each step of the store is one, carried out again when the database has interrupted it.
//!
//! Every transaction writes a *mark*, its first row. When the connection is lost while it commits, nobody knows whether it has;
//! then it is carried out again with the same mark. The mark can only be written once, so that either the first attempt never
//! took effect, or the second one finds out that it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, PoolError, TimeoutType};
use futures_util::TryStreamExt;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::values::json;
use super::{Context, Database};
use crate::id::Random;
use crate::secret::SystemRandomness;
use crate::store::step::{Step, Stop, step_result};
use crate::store::{Result, StepResult, StoreError};

/// How long a step is tried, from its first attempt on.
const DEADLINE: Duration = Duration::from_secs(5);

/// Longest waits before a step is tried again, in milliseconds: half of it at least.
const BACKOFF: [u64; 6] = [4, 16, 50, 100, 250, 500];

/// The time of the database in milliseconds since 1970-01-01T00:00:00Z.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection, in a transaction or not. It is closed when it is dropped within one, or leads to a server that is not the
/// primary.
pub(super) struct Session {
    client: Option<Object>,
    pub(super) context: Arc<Context>,
    is_idle: AtomicBool,
    /// Whether its server is not the primary any more.
    is_read_only: AtomicBool,
    /// Whether the transaction makes deliveries due.
    wakes: AtomicBool,
}

/// A session, for work that may be done again. Work gets one of its own, because a future that borrows it could not be sent to
/// other threads ([rust-lang/rust#100013](https://github.com/rust-lang/rust/issues/100013)).
pub(super) type Tx = Arc<Session>;

impl Session {
    pub(super) async fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let client = self.client()?;
        let statement = client.prepare_cached(sql).await.map_err(|error| self.explain(error))?;
        client.query(&statement, params).await.map_err(|error| self.explain(error))
    }

    pub(super) async fn query_opt(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>> {
        Ok(self.query(sql, params).await?.pop())
    }

    /// Reads the number in the first column of the only row; 0 without one.
    pub(super) async fn count(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        let row = self.query_opt(sql, params).await?;
        Ok(row.and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok()).unwrap_or(0))
    }

    /// Decodes the first column of the only row, which is `what` it is called in an error.
    pub(super) async fn find_json<T>(&self, what: &str, sql: &str, params: Params<'_>) -> Result<Option<T>>
    where
        T: DeserializeOwned,
    {
        self.query_opt(sql, params).await?.map(|row| json(what, &row, 0)).transpose()
    }

    /// Decodes the first column of all rows.
    pub(super) async fn list_json<T>(&self, what: &str, sql: &str, params: Params<'_>) -> Result<Vec<T>>
    where
        T: DeserializeOwned,
    {
        self.query(sql, params).await?.iter().map(|row| json(what, row, 0)).collect()
    }

    /// Returns the number of rows that were written.
    pub(super) async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        let client = self.client()?;
        let statement = client.prepare_cached(sql).await.map_err(|error| self.explain(error))?;
        client.execute(&statement, params).await.map_err(|error| self.explain(error))
    }

    /// Writes a row of `settings`.
    pub(super) async fn put_setting(&self, name: &str, value: &[u8]) -> Result<()> {
        let sql = "INSERT INTO settings (name, value) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.execute(sql, &[&name, &value]).await.map(drop)
    }

    /// Wakes the task that carries out deliveries once the transaction is committed.
    pub(super) fn wake_after_commit(&self) {
        self.wakes.store(true, Ordering::Relaxed);
    }

    /// Passes each row to `visit`, of however many.
    pub(super) async fn for_each(&self, sql: &str, mut visit: impl FnMut(&Row)) -> Result<()> {
        let rows = self.client()?.query_raw(sql, std::iter::empty::<&str>()).await;
        let mut rows = std::pin::pin!(rows.map_err(|error| self.explain(error))?);
        while let Some(row) = rows.try_next().await.map_err(|error| self.explain(error))? {
            visit(&row);
        }
        Ok(())
    }

    fn explain(&self, error: Error) -> StoreError {
        if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) {
            self.is_read_only.store(true, Ordering::Relaxed);
        }
        explain(error)
    }

    fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Carries out statements without parameters.
    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client()?.batch_execute(sql).await.map_err(|error| self.explain(error))
    }

    fn client(&self) -> Result<&Object> {
        self.client.as_ref().ok_or_else(closed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let is_idle = self.is_idle.load(Ordering::Relaxed) && !self.is_read_only.load(Ordering::Relaxed);
        if let Some(client) = self.client.take().filter(|_| !is_idle) {
            drop(Object::take(client));
        }
    }
}

fn closed() -> StoreError {
    StoreError::Interrupted("the connection is closed".to_owned())
}

/// How an attempt of a step ended.
enum Attempt<T> {
    Committed(T),
    /// An earlier attempt has committed.
    WasCommitted,
    Stopped(Stop<T>),
    /// The connection was lost during the commit.
    Unknown(T, StoreError),
}

impl Database {
    /// Runs a step in one transaction. `work` is called again when the database interrupts it.
    pub(super) async fn step<T, F>(&self, work: impl Fn(Tx) -> F) -> Result<StepResult<T>>
    where
        F: Future<Output = Step<T>>,
    {
        let mut mark = [0; 16];
        SystemRandomness.fill(&mut mark);
        let mut unknown = None;
        let mut tries = Tries::new();
        loop {
            let interrupted = match timeout_at(tries.deadline, self.attempt(&mark, &work)).await {
                Ok(Attempt::Committed(value)) => return Ok(StepResult::Done(value)),
                Ok(Attempt::WasCommitted) => match unknown {
                    Some(value) => return Ok(StepResult::Done(value)),
                    None => return Err(StoreError::Io(std::io::Error::other("a mark was used twice"))),
                },
                Ok(Attempt::Stopped(Stop::Failed(error @ StoreError::Interrupted(_)))) => error,
                Ok(Attempt::Stopped(stop)) => return step_result(Err(stop)),
                Ok(Attempt::Unknown(value, error)) => {
                    unknown = Some(value);
                    error
                }
                Err(_elapsed) => return Err(give_up(None)),
            };
            tries.wait(interrupted).await?;
        }
    }

    /// Runs a step that decides nothing.
    pub(super) async fn write<T, F>(&self, work: impl Fn(Tx) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let step = |tx| {
            let work = work(tx);
            async move { Ok(work.await?) }
        };
        match self.step(step).await? {
            StepResult::Done(value) | StepResult::Replayed(value) => Ok(value),
            StepResult::Refused(_) | StepResult::Recheck | StepResult::Missing => Err(closed()),
        }
    }

    /// Runs reads that need no transaction.
    pub(super) async fn read<T, F>(&self, work: impl Fn(Tx) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut tries = Tries::new();
        loop {
            let interrupted = match timeout_at(tries.deadline, self.scan(&work)).await {
                Ok(Err(error @ StoreError::Interrupted(_))) => error,
                Ok(done) => return done,
                Err(_elapsed) => return Err(give_up(None)),
            };
            tries.wait(interrupted).await?;
        }
    }

    /// Runs one query.
    pub(super) async fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        self.read(|tx| async move { tx.query(sql, params).await }).await
    }

    pub(super) async fn query_opt(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>> {
        Ok(self.query(sql, params).await?.pop())
    }

    /// Runs a query of a number; see [`Session::count`].
    pub(super) async fn count(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        self.read(|tx| async move { tx.count(sql, params).await }).await
    }

    /// Runs one statement in a transaction. Returns the number of rows that were written.
    pub(super) async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        self.write(|tx| async move { tx.execute(sql, params).await }).await
    }

    /// Runs reads that take long: once, and without a deadline.
    pub(super) async fn scan<T, F>(&self, work: impl FnOnce(Tx) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let session = self.session().await?;
        session.set_idle(false);
        let value = work(Arc::clone(&session)).await;
        session.set_idle(true);
        value
    }

    async fn session(&self) -> Result<Tx> {
        let client = self.pool.get().await.map_err(|error| match error {
            PoolError::Timeout(TimeoutType::Wait) => StoreError::Overloaded,
            PoolError::Backend(error) => explain(error),
            error => StoreError::Interrupted(with_causes(&error)),
        })?;
        Ok(Arc::new(Session {
            client: Some(client),
            context: Arc::clone(&self.context),
            is_idle: AtomicBool::new(true),
            is_read_only: AtomicBool::new(false),
            wakes: AtomicBool::new(false),
        }))
    }

    async fn attempt<T, F>(&self, mark: &[u8; 16], work: &impl Fn(Tx) -> F) -> Attempt<T>
    where
        F: Future<Output = Step<T>>,
    {
        let session = match self.session().await {
            Ok(session) => session,
            Err(error) => return Attempt::Stopped(error.into()),
        };
        session.set_idle(false);
        match begin(&session, mark).await {
            Ok(true) => {}
            Ok(false) => return Attempt::WasCommitted,
            Err(error) => return Attempt::Stopped(error.into()),
        }
        let value = match work(Arc::clone(&session)).await {
            Ok(value) => value,
            Err(stop) => {
                session.set_idle(session.run("ROLLBACK").await.is_ok());
                return Attempt::Stopped(stop);
            }
        };
        let committed = session.run("COMMIT").await;
        if session.wakes.load(Ordering::Relaxed) {
            self.context.due.wake();
        }
        match committed {
            Ok(()) => {
                session.set_idle(true);
                Attempt::Committed(value)
            }
            Err(error @ StoreError::Interrupted(_)) => Attempt::Unknown(value, error),
            Err(error) => Attempt::Stopped(error.into()),
        }
    }
}

/// Begins a transaction and writes its mark. Returns `false` if the mark exists.
async fn begin(session: &Session, mark: &[u8; 16]) -> Result<bool> {
    let sql = "INSERT INTO marks (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    // Both are sent at once.
    let params: Params<'_> = &[&&mark[..]];
    let (_, written) = tokio::try_join!(session.run("BEGIN"), session.execute(sql, params))?;
    Ok(written == 1)
}

/// The attempts of a step until its deadline.
struct Tries {
    count: usize,
    deadline: Instant,
}

impl Tries {
    fn new() -> Self {
        Self { count: 0, deadline: Instant::now() + DEADLINE }
    }

    /// Waits before the next attempt, for a time drawn by lot, so that those that have met do not meet again.
    async fn wait(&mut self, interrupted: StoreError) -> Result<()> {
        let longest = BACKOFF[self.count.min(BACKOFF.len() - 1)];
        self.count += 1;
        let wait = Duration::from_millis(fastrand::u64(longest / 2..=longest));
        if Instant::now() + wait >= self.deadline {
            return Err(give_up(Some(interrupted)));
        }
        sleep(wait).await;
        Ok(())
    }
}

fn give_up(last: Option<StoreError>) -> StoreError {
    StoreError::Unavailable(match last {
        Some(StoreError::Interrupted(why)) => why,
        _ => "the database does not answer".to_owned(),
    })
}

/// Maps an error of the database. What may succeed when the transaction is carried out again is [`StoreError::Interrupted`].
fn explain(error: Error) -> StoreError {
    const INTERRUPTIONS: [SqlState; 10] = [
        SqlState::UNIQUE_VIOLATION, // somebody else has just written it: the next attempt reads that
        SqlState::IN_FAILED_SQL_TRANSACTION, // a statement that was sent at the same time has failed
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION, // a server that is not the primary any more
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::QUERY_CANCELED,
    ];
    let Some(database) = error.as_db_error() else {
        return match error.is_closed()
            || std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>())
        {
            true => StoreError::Interrupted(with_causes(&error)),
            false => StoreError::Io(std::io::Error::other(error)),
        };
    };
    let code = database.code();
    match *code {
        SqlState::DISK_FULL => StoreError::Full,
        _ if INTERRUPTIONS.contains(code)
            || ["08", "40"].iter().any(|class| code.code().starts_with(class)) =>
        {
            StoreError::Interrupted(with_causes(&error))
        }
        _ => StoreError::Io(std::io::Error::other(error)),
    }
}

/// The text of an error with that of its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
