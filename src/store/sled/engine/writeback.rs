//! Periodic sync of the index file, so that dirty pages do not accumulate and stall the journal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, park, park_timeout};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::disk::{Disk, is_full};
use super::index::IndexProvider;
use super::options::EngineOptions;
use super::rebuild::INDEX;
use super::watchdog::mark_untrusted;

const PAUSE: Duration = Duration::from_millis(100);

/// Background thread that syncs the index; sleeps while nothing is written.
pub(crate) struct Writeback {
    flags: Arc<Flags>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Flags {
    is_dirty: AtomicBool,
    is_stopping: AtomicBool,
    /// A sync failed on a full disk: the content of the file is unknown.
    has_failed_sync: AtomicBool,
}

impl Writeback {
    /// Starts the thread. After a failed sync the content of the index on disk is unknown: the next start must not
    /// trust it.
    pub(crate) fn start(
        indexes: Arc<dyn IndexProvider>,
        disk: Arc<dyn Disk>,
        options: &EngineOptions,
    ) -> io::Result<Writeback> {
        let flags = Arc::new(Flags::default());
        let (shared, fatal) = (Arc::clone(&flags), Arc::clone(&options.on_fatal));
        let thread = thread::Builder::new().name("writeback".to_owned()).spawn(move || {
            if let Err(error) = run(&shared, &*indexes) {
                mark_untrusted(disk);
                fatal(&format!("cannot sync the index: {error}"));
            }
        })?;
        Ok(Writeback { flags, thread: Some(thread) })
    }

    /// Marks the index as changed.
    pub(crate) fn mark_dirty(&self) {
        if !self.flags.is_dirty.swap(true, Ordering::Release) {
            self.wake();
        }
    }

    /// Returns whether a sync has failed on a full disk since the last call: the index must be rebuilt.
    pub(crate) fn take_failed_sync(&self) -> bool {
        self.flags.has_failed_sync.swap(false, Ordering::AcqRel)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Writeback {
    fn drop(&mut self) {
        self.flags.is_stopping.store(true, Ordering::Release);
        self.wake();
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn run(flags: &Flags, indexes: &dyn IndexProvider) -> io::Result<()> {
    loop {
        while !flags.is_dirty.load(Ordering::Acquire) {
            if flags.is_stopping.load(Ordering::Acquire) {
                return Ok(());
            }
            park();
        }
        let next = Instant::now() + PAUSE;
        while Instant::now() < next {
            if flags.is_stopping.load(Ordering::Acquire) {
                return Ok(());
            }
            park_timeout(next.saturating_duration_since(Instant::now()));
        }
        flags.is_dirty.store(false, Ordering::Release);
        match indexes.sync_data(INDEX) {
            // While the index is replaced, the file does not exist.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Nothing was attempted, so nothing is in doubt: retry with the next free descriptor.
            Err(error) if is_out_of_files(&error) => flags.is_dirty.store(true, Ordering::Release),
            Err(error) if is_full(&error) => flags.has_failed_sync.store(true, Ordering::Release),
            other => other?,
        }
    }
}

/// Whether an error means that too many files are open.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
