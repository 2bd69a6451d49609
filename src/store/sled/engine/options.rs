//! Options, events and open errors of the engine.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::fatal::end_process;
use super::tx::Tx;
use crate::id::Random;
use crate::secret::SystemRandomness;
use crate::store::Result;

/// Options of an engine. [`EngineOptions::default`] suits a server; commands that open a store briefly disable
/// `verify_index` and `preallocate`.
#[derive(Clone)]
pub struct EngineOptions {
    /// Free disk space to keep, in bytes; below it, writes fail with [`StoreError::Full`](crate::store::StoreError).
    pub min_free: u64,
    /// Memory for the cache of the index in bytes.
    pub cache_size: u64,
    /// Size of the first segment of the journal in bytes, also used when space is low.
    pub first_segment: u64,
    /// Maximum size of a segment in bytes; each is four times as large as the one before, up to this.
    pub largest_segment: u64,
    /// Whether to verify the index against the digest in the journal while serving.
    pub verify_index: bool,
    /// Whether to preallocate the next segment of the journal in the background.
    pub preallocate: bool,
    /// Size in bytes that the closed segments must have before they are compacted, if they are larger than the base; `None`
    /// compacts only on request.
    pub compact_after: Option<u64>,
    /// Time after which rows that were deleted leave the journal too, by a compaction; `None` if only on request.
    pub erase_after: Option<Duration>,
    /// Idle time after which the journal is sealed.
    pub seal_after: Duration,
    /// Timeout for locks that another process holds.
    pub lock_wait: Duration,
    /// Identity of the store, if this opening creates it.
    pub instance: [u8; 16],
    /// Reads the rows that every start needs from a trusted index. If it fails, the index is rebuilt before it is
    /// used.
    pub startup_check: Arc<IndexHook>,
    /// Corrects counters. Called on a rebuilt index whose digest differs from the journal's, which means that some
    /// operation was decided on an incomplete index. Its changes become durable together with the correct digest,
    /// before the index is read.
    pub recount: Arc<IndexHook>,
    /// Called with the key of each changed row, before the operation is acknowledged, and with `None` once another
    /// index serves: a damaged one may have returned outdated rows.
    pub on_change: Arc<OnChange>,
    /// Called after each group that was synced with the number of its operations.
    pub on_group: Arc<dyn Fn(usize) + Send + Sync>,
    /// Called after each sync of the journal with its duration.
    pub on_sync: Arc<dyn Fn(Duration) + Send + Sync>,
    /// Called once with the reason when durability can no longer be guaranteed. The default ends the process.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let mut instance = [0; 16];
        SystemRandomness.fill(&mut instance);
        EngineOptions {
            min_free: 128 << 20,
            cache_size: 48 << 20,
            first_segment: 256 << 10,
            largest_segment: 64 << 20,
            verify_index: true,
            preallocate: true,
            compact_after: Some(64 << 20),
            erase_after: Some(Duration::from_secs(23 * 3600)),
            seal_after: Duration::from_millis(50),
            lock_wait: Duration::from_secs(10),
            instance,
            startup_check: Arc::new(|_| Ok(())),
            recount: Arc::new(|_| Ok(())),
            on_change: Arc::new(|_| ()),
            on_group: Arc::new(|_| ()),
            on_sync: Arc::new(|_| ()),
            on_fatal: Arc::new(end_process),
        }
    }
}

/// Work on an index that was just opened, before it is used.
pub type IndexHook = dyn Fn(&mut Tx<'_>) -> Result<()> + Send + Sync;

/// See [`EngineOptions::on_change`].
pub type OnChange = dyn Fn(Option<&[u8]>) + Send + Sync;

/// Events of an engine, for the log and the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// A file or folder was accessible to other users; its permissions are restricted now.
    PermissionsRepaired {
        path: String,
    },
    HeaderRepaired {
        file: String,
    },
    TornWriteSaved {
        file: String,
        bytes: u64,
    },
    Rebuilding {
        why: String,
    },
    /// Progress of a rebuild in bytes of the journal.
    Progress {
        done: u64,
        total: u64,
    },
    Rebuilt,
    /// No space for the index: reads and writes fail until there is.
    NoSpace,
    /// Less space is free than [`EngineOptions::min_free`]: writes fail until there is more.
    LowSpace,
    /// A call of the index is slow while a thread waits for the disk.
    DiskStalled,
    /// The digest of the rebuilt index differs from the journal's; counters are recomputed.
    DigestMismatch {
        sequence: u64,
    },
    Verified,
    /// The closed segments of the journal and its base had `before` bytes, its base has `after` now.
    Compacted {
        before: u64,
        after: u64,
    },
    /// A compaction could not be completed; nothing is lost, and it is tried again.
    CompactionFailed {
        why: String,
    },
    /// What was erased remains in the files of the index, until the next compaction or start.
    RenewalFailed {
        why: String,
    },
    JobFailed {
        why: String,
    },
}

impl fmt::Display for EngineEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PermissionsRepaired { path } => {
                write!(f, "`{path}` was readable by other users and is no longer")
            }
            Self::HeaderRepaired { file } => {
                write!(f, "a header of `{file}` was damaged and is written anew from the other")
            }
            Self::TornWriteSaved { file, bytes } => {
                write!(f, "{bytes} bytes of an unfinished write were moved out of `{file}`")
            }
            Self::Rebuilding { why } => write!(f, "rebuilding the index from the journal: {why}"),
            Self::Progress { done, total } => write!(f, "{done} of {total} bytes of the journal read"),
            Self::Rebuilt => f.write_str("the index is rebuilt"),
            Self::NoSpace => f.write_str("no room for the index: nothing is read or written until there is"),
            Self::LowSpace => {
                f.write_str("less disk space is free than --min-free: writes are refused until there is more")
            }
            Self::DiskStalled => f.write_str("the disk is slow: a call of the index is waiting for it"),
            Self::DigestMismatch { sequence } => {
                write!(f, "the index differs from the digest of write {sequence}; counting anew")
            }
            Self::Verified => f.write_str("the index agrees with the digest of the journal"),
            Self::Compacted { before, after } => {
                write!(f, "the journal is compacted: {before} bytes before, {after} now")
            }
            Self::CompactionFailed { why } => write!(f, "the journal could not be compacted: {why}"),
            Self::RenewalFailed { why } => {
                write!(f, "the index keeps what was erased until the next compaction or start: {why}")
            }
            Self::JobFailed { why } => write!(f, "a background job failed and was dropped: {why}"),
        }
    }
}

pub type EventSink = Arc<dyn Fn(EngineEvent) + Send + Sync>;

/// The process that holds a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    /// URL of its server, if it is one.
    pub address: Option<String>,
}

/// Damage of a journal, and what remains readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalDamage {
    /// The file, relative to the store.
    pub file: String,
    /// Offset in bytes.
    pub position: u64,
    pub what: String,
    /// Last sequence that can be read before the damage.
    pub readable_before: u64,
    /// First sequence known to follow the damage.
    pub readable_after: Option<u64>,
}

/// Failure to open a store, in which nothing has been changed then, except its lock file; or to write its journal.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the store `{path}` is in use{}", describe_holder(.holder.as_ref()))]
    Locked { path: PathBuf, holder: Option<LockHolder> },
    /// The store was written by another version.
    #[error("the store has format {found}, this version reads formats up to {ours}; use {}", reader(.version.as_deref()))]
    Format {
        found: u32,
        ours: u32,
        /// The version that wrote it, if recorded.
        version: Option<String>,
    },
    #[error("the journal is damaged: {} at byte {}: {}; {}", .0.file, .0.position, .0.what, readable(.0))]
    Damaged(Box<JournalDamage>),
    #[error("no space left on the disk to open the store; free some space and try again")]
    NoSpace,
    /// Not even an empty index could be opened.
    #[error("the index of the store cannot be opened: {0}")]
    Index(String),
    #[error("cannot {doing}")]
    Io {
        /// The failed action, for messages.
        doing: String,
        source: io::Error,
    },
}

impl OpenError {
    /// Returns the message, and its cause.
    pub(crate) fn with_cause(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

fn reader(version: Option<&str>) -> String {
    version.map_or("the version of forms that wrote it".to_owned(), |version| {
        format!("forms {version} or newer")
    })
}

fn describe_holder(holder: Option<&LockHolder>) -> String {
    match holder {
        Some(LockHolder { pid, address: Some(address) }) => {
            format!(" by process {pid}, which serves {address}; use --url {address}, or stop it")
        }
        Some(LockHolder { pid, address: None }) => format!(" by process {pid}; wait for it or stop it"),
        None => " by another process; wait for it or stop it".to_owned(),
    }
}

/// What to do about a damaged journal.
const HELP: &str = "restore a backup, or read what is left with forms store salvage --data DIR --to DIR";

fn readable(damage: &JournalDamage) -> String {
    let before = match damage.readable_before {
        0 => "nothing before it can be read".to_owned(),
        last => format!("everything up to change {last} can be read"),
    };
    match damage.readable_after {
        Some(first) => format!("{before}, and from change {first} on; {HELP}"),
        None => format!("{before}; {HELP}"),
    }
}
