//! The engine: durable rows under byte keys. It knows no business.
//!
//! Writes go through one thread, which makes a group of them durable with one sync; reads go past it, straight to
//! the index.

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

/// An open store of rows. Cheap to clone; all clones are one store. Dropping the last of them lets go of it; only
/// [`Engine::close`] closes it, so that the next start need not repair.
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

/// What ends with the engine.
struct Running {
    thread: JoinHandle<Result<(), StoreError>>,
    lock: Arc<dyn StoreLock>,
    _watchdog: Watchdog,
}

impl Engine {
    /// Opens the store in a folder, creating it if it is missing. Blocks, for as long as a rebuild takes.
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

    /// Runs `work` on the writer thread and returns once its changes are durable and can be read.
    ///
    /// # Errors
    /// Those of `work`; [`StoreError::Busy`], [`StoreError::Full`], [`StoreError::Panicked`] and
    /// [`StoreError::Unavailable`] as they say.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_as(WriteKind::Normal, work).await
    }

    /// Like [`Engine::write`], for work of another kind.
    ///
    /// # Errors
    /// As [`Engine::write`].
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
    /// [`StoreError::Damaged`] if it cannot be read back as it was written, [`StoreError::Unavailable`] while there
    /// is no index.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.wake_on_damage(self.inner.reader.get(key))
    }

    /// Returns at most `limit` rows of a range.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub fn scan(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        self.wake_on_damage(self.inner.reader.scan(range, direction, limit))
    }

    /// As [`Engine::scan`], but ends after the row with which `bytes` of bodies are reached. True if rows may follow
    /// for that reason.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub fn scan_page(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
        bytes: usize,
    ) -> Result<(Rows, bool), StoreError> {
        self.wake_on_damage(self.inner.reader.scan_page(range, direction, limit, bytes))
    }

    /// Passes on what was read. Where its reader found it damaged, the index is going to be verified.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn track_damage<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        self.wake_on_damage(self.inner.reader.track_damage(read))
    }

    /// Calls the writer where something could not be read: the index is to be verified, also if nobody writes.
    fn wake_on_damage<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(read, Err(StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::Full)) {
            self.inner.queue.wake_writer();
        }
        read
    }

    /// Runs a long job in slices of at most 100 rows, now and then, until it says [`Progress::Done`]. A job that
    /// fails is reported and dropped; one that is under way when the store is closed is dropped, too.
    pub fn background(&self, job: impl FnMut(&mut Tx<'_>) -> Result<Progress, StoreError> + Send + 'static) {
        self.inner.queue.push_job(Box::new(job));
    }

    /// Returns whether the store can work, without waiting.
    pub fn health(&self) -> Health {
        self.inner.status.get()
    }

    /// Writes into the lock file where this process can be reached.
    ///
    /// # Errors
    /// If the file cannot be written; the lock is held all the same.
    pub fn set_address(&self, address: &str) -> Result<(), StoreError> {
        let running = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &*running {
            Some(running) => Ok(running.lock.set_text(&lock::text(Some(address)))?),
            None => Err(StoreError::Unavailable("it was closed".to_owned())),
        }
    }

    /// Stops cleanly: later calls fail, what was accepted is finished, the next start trusts the index. Blocks.
    ///
    /// # Errors
    /// If something could not be made durable. Nothing acknowledged is lost; the next start repairs.
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
        // What was closed before has stopped already. Anything else is no clean stop: it may be dropped for a failure.
        drop(self.stop(ShutdownMode::Abandoned));
    }
}
