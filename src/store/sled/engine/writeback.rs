//! Sync of the index file on a thread of its own, so that dirty pages do not accumulate and stall the journal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;

use super::disk::{Disk, is_full};
use super::index::IndexProvider;
use super::options::EngineOptions;
use super::rebuild::{INDEX, NEW};
use super::watchdog::mark_untrusted;

/// Background thread that syncs the index.
pub(crate) struct Writeback {
    /// `None` only during drop, which ends the thread.
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// A sync failed on a full disk: the content of the file is unknown.
    has_failed_sync: Arc<AtomicBool>,
}

impl Writeback {
    /// Starts the thread. After a failed sync the content of the index on disk is unknown: the next start must not
    /// trust it.
    pub(crate) fn start(
        indexes: Arc<dyn IndexProvider>,
        disk: Arc<dyn Disk>,
        options: &EngineOptions,
    ) -> io::Result<Writeback> {
        let (requests, requested) = sync_channel(1);
        let has_failed_sync = Arc::new(AtomicBool::new(false));
        let (has_failed, fatal) = (Arc::clone(&has_failed_sync), Arc::clone(&options.on_fatal));
        let thread = thread::Builder::new().name("writeback".to_owned()).spawn(move || {
            while requested.recv().is_ok() {
                match [INDEX, NEW].iter().try_for_each(|folder| indexes.sync_data(folder)) {
                    Ok(()) => {}
                    // A new index rarely exists, and while it replaces the old one neither does.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    // Nothing was attempted, so nothing is in doubt.
                    Err(error) if is_out_of_files(&error) => {}
                    Err(error) if is_full(&error) => has_failed.store(true, Ordering::Relaxed),
                    Err(error) => {
                        mark_untrusted(disk);
                        return fatal(&format!("cannot sync the index: {error}"));
                    }
                }
            }
        })?;
        Ok(Writeback { requests: Some(requests), thread: Some(thread), has_failed_sync })
    }

    /// Syncs the index, without waiting for it.
    pub(crate) fn sync(&self) {
        // If a request waits already, its sync includes all that was written until now.
        let _waiting = self.requests.as_ref().map(|requests| requests.try_send(()));
    }

    /// Returns whether a sync has failed on a full disk since the last call: the index must be rebuilt.
    pub(crate) fn take_failed_sync(&self) -> bool {
        self.has_failed_sync.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Writeback {
    fn drop(&mut self) {
        drop(self.requests.take());
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Whether an error means that too many files are open.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
