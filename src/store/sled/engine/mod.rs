//! The storage engine: durable rows under byte keys. It knows nothing of forms.
//!
//! All writes go through one thread, which commits groups of them with one sync; reads bypass it and use the index
//! directly.

pub mod options;
pub mod tx;

pub mod operation;
pub mod writer;

pub mod disk;
pub mod index;
pub mod reader;
pub mod state;

mod applied;
mod cell;
mod digest;
mod discover;
pub mod fatal;
mod frame;
mod group;
pub mod job;
mod journal;
pub mod lock;
mod open;
mod queue;
mod rebuild;
mod repair;
mod replay;
mod segment;
mod status;
mod verify;
mod watchdog;
mod worker;
mod writeback;

use std::ops::RangeBounds;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use self::discover::io_error;
use self::disk::{Disk, RealDisk, StoreLock};
use self::index::{IndexProvider, SledIndexes};
use self::job::Progress;
use self::operation::{WriteCall, WriteKind};
use self::options::{EngineOptions, EventSink, OpenError};
use self::queue::{ShutdownMode, WriterQueue};
use self::reader::Reader;
use self::status::Status;
use self::tx::{Direction, Rows, Tx};
use self::watchdog::{Watchdog, watch};
use self::worker::Worker;
use self::writeback::Writeback;
use self::writer::Writer;
use crate::store::{Health, StoreError};

/// An open store. Cheap to clone; all clones share one store. Dropping the last clone releases it; only
/// [`Engine::close`] stops it cleanly, so that the next start need not repair.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<WriterQueue>,
    reader: Reader,
    status: Status,
    running: Mutex<Option<Running>>,
}

/// Resources released when the engine stops.
struct Running {
    thread: JoinHandle<Result<(), StoreError>>,
    lock: Arc<dyn StoreLock>,
    _watchdog: Watchdog,
}

impl Engine {
    /// Opens the store in a folder, creating it if missing. Blocks while the index is rebuilt.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_path(path: &Path, options: EngineOptions, report: EventSink) -> Result<Engine, OpenError> {
        let disk = RealDisk::new(path).map_err(io_error("create the folder of the store"))?;
        let indexes = SledIndexes::new(path, options.cache_size)
            .map(|indexes| indexes.with_lock_wait(options.lock_wait))
            .map_err(io_error("find the index"))?;
        Engine::open(Arc::new(disk), Arc::new(indexes), options, report)
    }

    /// Opens the store on a disk.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        disk: Arc<dyn Disk>,
        indexes: Arc<dyn IndexProvider>,
        options: EngineOptions,
        report: EventSink,
    ) -> Result<Engine, OpenError> {
        let threads = io_error("start a thread");
        let (indexes, watchdog) =
            watch(Arc::clone(&disk), indexes, &options, Arc::clone(&report)).map_err(&threads)?;
        let writer =
            Writer::open(Arc::clone(&disk), Arc::clone(&indexes), options.clone(), Arc::clone(&report))?;
        let writeback = Writeback::start(indexes, disk, &options).map_err(&threads)?;
        let queue = Arc::new(WriterQueue::new());
        let (reader, status, lock) = (writer.reader(), writer.status(), writer.lock());
        let worker = Worker { writer, queue: Arc::clone(&queue), writeback, options, report };
        let run = move || worker.run();
        let thread = thread::Builder::new().name("writer".to_owned()).spawn(run).map_err(&threads)?;
        let running = Mutex::new(Some(Running { thread, lock, _watchdog: watchdog }));
        Ok(Engine { inner: Arc::new(Inner { queue, reader, status, running }) })
    }

    /// Runs `work` on the writer thread and returns once its changes are durable and visible.
    ///
    /// # Errors
    /// Those of `work`, and those of [`StoreError`] that a write can meet: `Busy`, `Full`, `Panicked`, `Unavailable`.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_as(WriteKind::Normal, work).await
    }

    /// Runs `work` as [`Engine::write`] does, as an operation of another kind.
    ///
    /// # Errors
    /// Those of [`Engine::write`].
    pub async fn write_as<T: Send + 'static>(
        &self,
        kind: WriteKind,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.inner.queue.push(WriteCall::new(kind, work, reply)).await?;
        let dropped = |_| StoreError::Unavailable("it has stopped; the outcome is not known".to_owned());
        answer.await.map_err(dropped)?
    }

    /// Returns the body of a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the row is corrupt, [`StoreError::Unavailable`] while there is no index.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.wake_on_damage(self.inner.reader.get(key))
    }

    /// Returns at most `limit` rows of a range.
    ///
    /// # Errors
    /// Those of [`Engine::get`].
    pub fn scan(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        self.wake_on_damage(self.inner.reader.scan(range, direction, limit))
    }

    /// Returns rows of a range until `limit` rows or `bytes` of bodies are reached; `true` if more may follow because
    /// of `bytes`.
    ///
    /// # Errors
    /// Those of [`Engine::get`].
    pub fn scan_page(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
        bytes: usize,
    ) -> Result<(Rows, bool), StoreError> {
        self.wake_on_damage(self.inner.reader.scan_page(range, direction, limit, bytes))
    }

    /// Returns `read`, and schedules a verification of the index if it is an error of damage.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn track_damage<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        self.wake_on_damage(self.inner.reader.track_damage(read))
    }

    /// Wakes the writer after a damaged read, so that it verifies the index even if nothing is written.
    fn wake_on_damage<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(read, Err(StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::Full)) {
            self.inner.queue.wake_writer();
        }
        read
    }

    /// Runs a background job in slices of at most 100 rows until it returns [`Progress::Done`]. A job that fails is
    /// reported and dropped; an unfinished job is dropped when the store is closed.
    pub fn background(&self, job: impl FnMut(&mut Tx<'_>) -> Result<Progress, StoreError> + Send + 'static) {
        self.inner.queue.push_job(Box::new(job));
    }

    /// Returns the health, without blocking.
    pub fn health(&self) -> Health {
        self.inner.status.get()
    }

    /// Writes the address of this process to the lock file.
    ///
    /// # Errors
    /// If the file cannot be written; the lock remains held.
    pub fn set_address(&self, address: &str) -> Result<(), StoreError> {
        let running = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &*running {
            Some(running) => Ok(running.lock.set_text(&lock::text(Some(address)))?),
            None => Err(StoreError::Unavailable("it was closed".to_owned())),
        }
    }

    /// Stops cleanly: later calls fail, accepted operations are finished, the next start trusts the index. Blocks.
    ///
    /// # Errors
    /// If something could not be made durable. Acknowledged writes are safe; the next start repairs.
    pub fn close(&self) -> Result<(), StoreError> {
        self.inner.stop(ShutdownMode::Clean)
    }
}

impl Inner {
    fn stop(&self, end: ShutdownMode) -> Result<(), StoreError> {
        self.queue.close(end);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        match running.map(|running| running.thread.join()) {
            None => Ok(()),
            Some(Ok(closed)) => closed,
            Some(Err(_panic)) => Err(StoreError::Unavailable("the writer panicked".to_owned())),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A closed store has stopped already. Any other drop is not a clean stop, since a failure may have caused it.
        drop(self.stop(ShutdownMode::Abandoned));
    }
}
