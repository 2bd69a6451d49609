//! The index: the interface that the engine needs, and its implementation with sled.
//!
//! The only module that uses the crate `sled`. An index never holds the only copy of anything: it can be rebuilt from
//! the journal, so every failure in here can be recovered from, panics of sled included.

use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::disk::{Disk, is_full, repair_mode};
use super::options::{EngineOptions, EventSink};
use super::state::IndexIdentity;
use super::tx::Direction;
use super::watchdog::{CALL_TICKS, Watchdog, WatchedCall, WatchedCalls, open_ticks};

/// A write of one cell, or its deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    pub key: &'a [u8],
    /// The stored bytes, checksum included; `None` deletes the key.
    pub cell: Option<&'a [u8]>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum IndexError {
    /// The disk is full. The index is intact; reopen it when there is space.
    #[error("no space left on the disk for the index")]
    NoSpace,
    #[error("another process holds the index")]
    Locked,
    /// Anything else: damage, a failed read, a panic.
    #[error("the index failed: {0}")]
    Failed(String),
}

/// An open index: ordered keys and their cells.
pub trait Index: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError>;
    /// Visits the cells of a range in order, until `visit` returns `false`.
    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError>;
    /// Applies changes in order, one by one: readers may see some of them, and a killed process leaves a prefix of
    /// all changes since the last flush. Called by one thread at a time.
    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError>;
    /// Writes all applied changes to the operating system, so that they survive the death of the process.
    fn flush(&self) -> Result<(), IndexError>;
}

/// Manages the indexes of a store; `folder` is `index`, or the one under construction beside it.
pub trait IndexProvider: Send + Sync {
    /// Opens the index in a folder, creating it if missing.
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError>;
    /// Drops the last handle of an index and makes its files durable; the name of the folder becomes durable with the
    /// next rename in the store.
    fn close(&self, folder: &str, index: Arc<dyn Index>) -> Result<(), IndexError>;
    /// Syncs flushed data to the disk, so that it does not accumulate. Called while the index is in use.
    fn sync_data(&self, folder: &str) -> io::Result<()>;
    /// Returns the identity of the index file, which copies do not share if the file system supports it; `None` if
    /// there is no index.
    fn identity(&self, folder: &str) -> Option<IndexIdentity>;
    /// Returns the size of the index in bytes; 0 if there is none.
    fn size(&self, folder: &str) -> u64;
    /// Removes a closed index, if it exists.
    fn remove(&self, folder: &str) -> io::Result<()>;
    /// Renames a closed index, durably.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
}

/// Maximum time that sled's lock may outlive its holder: a child process that is being started has a copy of the
/// descriptor until it executes its own program. On a machine under load that took more than two seconds.
const LOCK_LINGERS: Duration = Duration::from_secs(10);

/// sled limits its cache by the size of pages on disk; decoded, with the page table's entries, they take about four times as much
/// memory (measured with rows of deliveries).
const MEMORY_PER_CACHED_BYTE: u64 = 4;

/// Indexes kept by sled.
pub struct SledIndexes {
    root: PathBuf,
    cache_size: u64,
    /// Timeout for an index that another process holds.
    lock_wait: Duration,
    calls: Arc<WatchedCalls>,
    _watchdog: Option<Watchdog>,
}

impl SledIndexes {
    /// Creates indexes in the folder of a store, each with a cache of about `cache_size` bytes of memory.
    pub fn new(root: &Path, cache_size: u64) -> io::Result<SledIndexes> {
        let root = std::path::absolute(root)?;
        let calls = Arc::new(WatchedCalls::default());
        Ok(SledIndexes { root, cache_size, lock_wait: LOCK_LINGERS, calls, _watchdog: None })
    }

    /// Starts a watchdog over the calls of sled.
    pub(super) fn watched(
        self,
        disk: Arc<dyn Disk>,
        options: &EngineOptions,
        report: EventSink,
    ) -> io::Result<SledIndexes> {
        let watchdog = Watchdog::start(Arc::clone(&self.calls), disk, options, report)?;
        Ok(SledIndexes { lock_wait: options.lock_wait.max(LOCK_LINGERS), _watchdog: Some(watchdog), ..self })
    }

    fn open_sled(&self, path: &Path) -> Result<::sled::Db, IndexError> {
        let config = ::sled::Config::new()
            .path(path)
            .cache_capacity(self.cache_size / MEMORY_PER_CACHED_BYTE)
            .flush_every_ms(None)
            .use_compression(false);
        let given_up = Instant::now() + self.lock_wait;
        loop {
            match guarded(|| config.open()) {
                Err(IndexError::Locked) if Instant::now() < given_up => sleep(Duration::from_millis(20)),
                other => return other,
            }
        }
    }
}

impl IndexProvider for SledIndexes {
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError> {
        let _call = self.calls.begin(open_ticks(self.size(folder)));
        let path = self.root.join(folder);
        remove_half_snapshots(&path).map_err(failed)?;
        let db = self.open_sled(&path)?;
        restrict_permissions(&path).map_err(failed)?;
        Ok(Arc::new(SledIndex {
            db: Some(db),
            is_full: AtomicBool::new(false),
            calls: Arc::clone(&self.calls),
        }))
    }

    fn close(&self, folder: &str, index: Arc<dyn Index>) -> Result<(), IndexError> {
        let _call = self.calls.begin(CALL_TICKS);
        index.flush()?;
        drop(index);
        let path = self.root.join(folder);
        restrict_permissions(&path).and_then(|()| sync_all_below(&path)).map_err(failed)
    }

    fn sync_data(&self, folder: &str) -> io::Result<()> {
        File::open(self.root.join(folder).join("db"))?.sync_data()
    }

    fn identity(&self, folder: &str) -> Option<IndexIdentity> {
        let metadata = fs::metadata(self.root.join(folder).join("db")).ok()?;
        let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let time = born.unwrap_or_default().as_nanos();
        Some(IndexIdentity { text: format!("{}-{time}", metadata.ino()), detects_copies: born.is_some() })
    }

    fn size(&self, folder: &str) -> u64 {
        fs::metadata(self.root.join(folder).join("db")).map_or(0, |metadata| metadata.len())
    }

    fn remove(&self, folder: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.root.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))?;
        File::open(&self.root)?.sync_all()
    }
}

/// Removes unfinished snapshots: one left by a killed process makes every later open fail.
fn remove_half_snapshots(folder: &Path) -> io::Result<()> {
    for entry in entries(folder)? {
        if entry.extension().is_some_and(|extension| extension == "generating") {
            fs::remove_file(entry)?;
        }
    }
    Ok(())
}

/// Removes access for group and others: sled creates its files with the permissions that the umask leaves.
fn restrict_permissions(path: &Path) -> io::Result<()> {
    repair_mode(path)?;
    if fs::symlink_metadata(path)?.is_dir() {
        entries(path)?.iter().try_for_each(|entry| restrict_permissions(entry))?;
    }
    Ok(())
}

fn sync_all_below(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        entries(path)?.iter().try_for_each(|entry| sync_all_below(entry))?;
    }
    File::open(path)?.sync_all()
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

struct SledIndex {
    /// `None` only during drop.
    db: Option<::sled::Db>,
    /// A write failed on a full disk. sled keeps its first error and returns it from then on, also for reads.
    is_full: AtomicBool,
    calls: Arc<WatchedCalls>,
}

impl SledIndex {
    /// Makes a call of sled under the watchdog; a long one reports its progress.
    fn call<T>(
        &self,
        call: impl FnOnce(&::sled::Db, &WatchedCall<'_>) -> ::sled::Result<T>,
    ) -> Result<T, IndexError> {
        let db = self.db.as_ref().ok_or_else(|| IndexError::Failed("it is closed".to_owned()))?;
        let watched = self.calls.begin(CALL_TICKS);
        guarded(|| call(db, &watched)).map_err(|error| {
            if matches!(error, IndexError::NoSpace) {
                self.is_full.store(true, Ordering::Relaxed);
            }
            if self.is_full.load(Ordering::Relaxed) { IndexError::NoSpace } else { error }
        })
    }
}

impl Drop for SledIndex {
    fn drop(&mut self) {
        // sled flushes on drop, which may hang, and panics if that fails. The changes are in the journal.
        let _call = self.calls.begin(CALL_TICKS);
        drop(catch_unwind(AssertUnwindSafe(|| drop(self.db.take()))));
    }
}

impl Index for SledIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(self.call(|db, _| db.get(key))?.map(|cell| cell.to_vec()))
    }

    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError> {
        self.call(|db, watched| {
            let mut rows = db.range::<&[u8], _>((start, end));
            let mut next = || match direction {
                Direction::Ascending => rows.next(),
                Direction::Descending => rows.next_back(),
            };
            while let Some(row) = next() {
                let (key, cell) = row?;
                watched.progress();
                if !visit(&key, &cell) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Does not use batches of sled: each writes two of its buffers to the file, which costs more than all the rest.
    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError> {
        self.call(|db, watched| {
            for Change { key, cell } in changes {
                watched.progress();
                match cell {
                    Some(cell) => drop(db.insert(key, cell)?),
                    None => drop(db.remove(key)?),
                }
            }
            Ok(())
        })
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.call(|db, _| db.flush()).map(|_bytes| ())
    }
}

/// Runs a call of sled, which panics on some kinds of damage.
fn guarded<T>(call: impl FnOnce() -> ::sled::Result<T>) -> Result<T, IndexError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(::sled::Error::Io(error))) => Err(failed(error)),
        Ok(Err(error)) => Err(IndexError::Failed(error.to_string())),
        Err(payload) => Err(panicked(payload)),
    }
}

fn failed(error: io::Error) -> IndexError {
    if is_full(&error) {
        return IndexError::NoSpace;
    }
    let why = error.to_string();
    // sled reports a held lock only in the text of the error.
    if why.contains("could not acquire lock") { IndexError::Locked } else { IndexError::Failed(why) }
}

fn panicked(payload: Box<dyn std::any::Any + Send>) -> IndexError {
    let why = panic_text(&*payload);
    match why.contains("StorageFull") || why.contains("QuotaExceeded") {
        true => IndexError::NoSpace,
        false => IndexError::Failed(format!("it panicked: {why}")),
    }
}

pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
