//! The blocking pool for work that may take longer than a millisecond: compiling definitions, checking large bodies,
//! searching, compressing.
//!
//! It uses at most half of the processors, first come first served, so that short requests keep the rest. Its queue is
//! bounded: past the bound, or after the longest wait in it, a job is refused rather than kept waiting.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

/// Bounds of a [`CpuPool`].
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Steps that run at a time: half of the processors, one at least.
    pub threads: usize,
    /// Jobs admitted at a time, running and queued. Each may hold a parsed body of about a megabyte.
    pub jobs: usize,
    /// Longest wait of a step for its turn.
    pub max_wait: Duration,
    /// How long one of several steps may take, so that other jobs have their turns.
    pub step: Duration,
    /// Time of a job of several steps, waits included, after which [`Job::is_overdue`] is true and it should end early.
    pub max_time: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            threads: (processors / 2).max(1),
            jobs: 64,
            max_wait: Duration::from_secs(5),
            step: Duration::from_millis(10),
            max_time: Duration::from_secs(2),
        }
    }
}

/// A job did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The queue is full, or the job waited in it for too long.
    #[error("too much work is queued")]
    Overloaded,
    /// The job panicked.
    #[error("a job panicked: {0}")]
    Panicked(String),
}

/// A bounded pool of blocking threads. Cheap to clone; all clones are one pool.
#[derive(Debug, Clone)]
pub struct CpuPool {
    running: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
    pub limits: PoolLimits,
}

/// A job of several steps that the pool has admitted; its place in the queue is free again when it is dropped.
#[derive(Debug)]
pub struct Job {
    running: Arc<Semaphore>,
    limits: PoolLimits,
    overdue_at: Instant,
    _admitted: OwnedSemaphorePermit,
}

impl Default for CpuPool {
    fn default() -> Self {
        Self::new(PoolLimits::default())
    }
}

impl CpuPool {
    pub fn new(limits: PoolLimits) -> Self {
        let [running, admitted] =
            [limits.threads, limits.jobs].map(|permits| Arc::new(Semaphore::new(permits)));
        Self { running, admitted, limits }
    }

    /// Admits a job of several steps.
    pub fn admit(&self) -> Result<Job, PoolError> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned();
        let admitted = admitted.map_err(|_full| PoolError::Overloaded)?;
        let (running, limits) = (Arc::clone(&self.running), self.limits);
        Ok(Job { running, limits, overdue_at: Instant::now() + limits.max_time, _admitted: admitted })
    }

    /// Runs `work` as a job of one step. Work that has begun runs to its end, also if the caller is dropped.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        self.admit()?.run(|_| work()).await
    }
}

impl Job {
    /// Whether the job has used up its time and should end with what it has.
    pub fn is_overdue(&self) -> bool {
        Instant::now() >= self.overdue_at
    }

    /// Runs one step, which is given the moment at which it should end. Between steps other jobs take their turns.
    pub async fn run<T: Send + 'static>(
        &self,
        step: impl FnOnce(Instant) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let permit = timeout(self.limits.max_wait, Arc::clone(&self.running).acquire_owned()).await;
        let permit =
            permit.map_err(|_elapsed| PoolError::Overloaded)?.expect("the semaphore is never closed");
        let length = self.limits.step;
        let step = move || {
            let result = step(Instant::now() + length);
            drop(permit);
            result
        };
        spawn_blocking(step).await.map_err(|error| PoolError::Panicked(error.to_string()))
    }
}
