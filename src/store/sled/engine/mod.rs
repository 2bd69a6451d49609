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

mod applied_frame;
mod base;
mod cell;
mod compaction;
mod digest;
pub(super) mod discover;
mod erasures;
pub mod fatal;
mod frame;
mod group;
pub mod job;
mod journal;
pub mod journal_check;
pub mod lock;
mod open;
mod queue;
pub(super) mod rebuild;
mod renewal;
mod repair;
mod replay;
pub mod salvage;
mod segment;
pub(super) mod snapshot;
mod verify;
mod watchdog;
mod worker;
mod writeback;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use self::discover::io_error;
use self::disk::{Disk, RealDisk, StoreLock};
use self::index::{IndexProvider, SledIndexes};
use self::job::{Job, Progress};
use self::operation::{WriteCall, WriteKind};
use self::options::{EngineOptions, EventSink, OpenError};
use self::queue::{Message, Request, ShutdownMode, WriterQueue};
use self::reader::Reader;
use self::tx::Tx;
use self::worker::Worker;
use self::writeback::Writeback;
use self::writer::Writer;
use crate::store::{Result, StoreError, StoreFile, StoreHealth, StoreUsage};

/// An open store. Cheap to clone; all clones share one store. Dropping the last clone releases it; only
/// [`Engine::close`] stops it cleanly, so that the next start need not repair.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<WriterQueue>,
    reader: Reader,
    report: EventSink,
    running: Mutex<Option<Running>>,
}

/// Resources released when the engine stops.
struct Running {
    thread: JoinHandle<Result<()>>,
    lock: Arc<dyn StoreLock>,
}

fn outcome_unknown() -> StoreError {
    StoreError::Unavailable("it has stopped; the outcome is not known".to_owned())
}

const START_THREAD: &str = "start a thread";

impl Engine {
    /// Opens the store in a folder, creating it if missing. Blocks while the index is rebuilt.
    pub fn open_path(path: &Path, options: EngineOptions, report: EventSink) -> Result<Engine, OpenError> {
        let (disk, indexes) = open_folder(path, &options, &report)?;
        Engine::open(disk, indexes, options, report)
    }

    pub fn open(
        disk: Arc<dyn Disk>,
        indexes: Arc<dyn IndexProvider>,
        options: EngineOptions,
        report: EventSink,
    ) -> Result<Engine, OpenError> {
        let writer =
            Writer::open(Arc::clone(&disk), Arc::clone(&indexes), options.clone(), Arc::clone(&report))?;
        let writeback = Writeback::start(indexes, disk, &options).map_err(io_error(START_THREAD))?;
        let (queue, backlog) = WriterQueue::new();
        let queue = Arc::new(queue);
        let (reader, lock) = (writer.reader(), Arc::clone(&writer.lock));
        reader.set_writer(Arc::clone(&queue));
        let worker =
            Worker { writer, queue: Arc::clone(&queue), backlog, writeback, options, must_compact: false };
        let thread = thread::Builder::new().name("writer".to_owned()).spawn(move || worker.run());
        let running = Running { thread: thread.map_err(io_error(START_THREAD))?, lock };
        let running = Mutex::new(Some(running));
        Ok(Engine { inner: Arc::new(Inner { queue, reader, report, running }) })
    }

    /// Runs `work` on the writer thread and returns once its changes are durable and visible.
    ///
    /// # Errors
    /// Those of `work`, and those of [`StoreError`] that a write can meet: `Busy`, `Full`, `Panicked`, `Unavailable`.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_as(WriteKind::Normal, work).await
    }

    /// Runs `work` as [`Engine::write`] does, as an operation of another kind.
    pub async fn write_as<T: Send + 'static>(
        &self,
        kind: WriteKind,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_then(kind, work, |_| ()).await
    }

    /// Runs `work` as [`Engine::write_as`] does, and calls `done` on the writer thread once its changes are durable and visible:
    /// also if the caller, whose operation is queued, has stopped waiting. `done` must not block.
    pub async fn write_then<T: Send + 'static>(
        &self,
        kind: WriteKind,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
        done: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let (sender, answer) = oneshot::channel();
        let reply = move |outcome: Result<T>| {
            if let Ok(value) = &outcome {
                done(value);
            }
            // The caller may have stopped waiting; the changes remain.
            drop(sender.send(outcome));
        };
        self.inner.queue.push(WriteCall::new(kind, work, reply)).await?;
        answer.await.unwrap_or_else(|_dropped| Err(outcome_unknown()))
    }

    /// Runs `work` between the groups of other operations, and blocks until its changes are durable.
    pub(super) fn write_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, answer) = mpsc::channel();
        let reply = move |outcome| drop(sender.send(outcome));
        self.inner.queue.send(Message::Job(WriteCall::new(WriteKind::Reclaim, work, reply)));
        answer.recv().unwrap_or_else(|_dropped| Err(outcome_unknown()))
    }

    /// Opens the files of the store as they are between two groups.
    ///
    /// # Errors
    /// `Unavailable` if the store has stopped, or if its files cannot be read.
    pub async fn snapshot(&self) -> Result<Vec<StoreFile>> {
        let (sender, answer) = oneshot::channel();
        self.inner.queue.send(Message::Request(Request::Snapshot(sender)));
        answer.await.unwrap_or_else(|_dropped| Err(StoreError::Unavailable("it has stopped".to_owned())))
    }

    /// Requests a compaction of the journal, which follows in the background once the present jobs are done.
    pub fn compact(&self) {
        self.inner.queue.send(Message::Request(Request::Compact));
    }

    /// Verifies the index; returns why it was rebuilt, if it was wrong.
    ///
    /// # Errors
    /// `Unavailable` if the store has stopped, or has no space for an index.
    pub async fn verify_index(&self) -> Result<Option<String>> {
        let (sender, answer) = oneshot::channel();
        self.inner.queue.send(Message::Request(Request::Verify(sender)));
        answer.await.map_err(|_dropped| StoreError::Unavailable("the index could not be verified".to_owned()))
    }

    /// Returns the disk space that the store takes.
    ///
    /// # Errors
    /// `Unavailable` if the store has stopped.
    pub async fn usage(&self) -> Result<StoreUsage> {
        let (sender, answer) = oneshot::channel();
        self.inner.queue.send(Message::Request(Request::Usage(sender)));
        answer.await.map_err(|_dropped| StoreError::Unavailable("it has stopped".to_owned()))
    }

    pub fn reader(&self) -> &Reader {
        &self.inner.reader
    }

    /// Runs a background job in slices of at most 100 rows until one returns [`Progress::Done`]. A slice without effect is
    /// repeated. A job that fails is reported and dropped; an unfinished job is dropped when the store is closed.
    pub fn background(&self, slice: impl Fn(&mut Tx<'_>) -> Result<Progress> + Send + 'static) {
        let (queue, report) = (Arc::clone(&self.inner.queue), Arc::clone(&self.inner.report));
        self.inner.queue.send(Message::Job(Job::new(slice, queue, report)));
    }

    pub fn health(&self) -> StoreHealth {
        self.inner.reader.health()
    }

    /// Writes the address of this process to the lock file.
    ///
    /// # Errors
    /// If the file cannot be written; the lock remains held.
    pub fn set_address(&self, address: &str) -> Result<()> {
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
    pub fn close(&self) -> Result<()> {
        self.inner.stop(ShutdownMode::Clean)
    }
}

/// Finds the files of a store in a folder, which is created if missing.
pub(super) fn open_folder(
    path: &Path,
    options: &EngineOptions,
    report: &EventSink,
) -> Result<(Arc<RealDisk>, Arc<SledIndexes>), OpenError> {
    let disk = Arc::new(RealDisk::new(path).map_err(io_error("create the folder of the store"))?);
    let indexes = SledIndexes::new(path, options.cache_size).map_err(io_error("find the index"))?;
    let indexes = indexes.watched(Arc::clone(&disk) as Arc<dyn Disk>, options, Arc::clone(report));
    Ok((disk, Arc::new(indexes.map_err(io_error(START_THREAD))?)))
}

impl Inner {
    fn stop(&self, end: ShutdownMode) -> Result<()> {
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
