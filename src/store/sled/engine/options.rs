//! How an engine is opened, what it says while it works, and why it may refuse to open.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::fatal::end_process;
use super::tx::Tx;
use crate::id::Random;
use crate::secret::SystemRandomness;
use crate::store::StoreError;

/// How the engine is to run. [`EngineOptions::default`] is right for the server; commands that open a store for a
/// moment turn `verify` and `prepare_ahead` off.
#[derive(Clone)]
pub struct EngineOptions {
    /// Bytes that must stay free on the disk; below, writes are refused with [`StoreError::Full`](crate::store::StoreError).
    pub min_free: u64,
    /// Bytes of the index kept in memory.
    pub cache_size: u64,
    /// Bytes of the first segment of the journal, and of one made where room is short.
    pub first_segment: u64,
    /// Bytes of the largest segment; each is four times as large as the one before, up to this.
    pub largest_segment: u64,
    /// Whether the index is verified against the journal's digest while serving.
    pub verify_index: bool,
    /// Whether a side thread prepares the next segment of the journal.
    pub preallocate: bool,
    /// How long a quiet journal stays unsealed.
    pub seal_after: Duration,
    /// How long to wait for a lock that somebody holds.
    pub lock_wait: Duration,
    /// The identity a store gets if this opening creates it.
    pub instance: [u8; 16],
    /// Makes the first reads of an index that is trusted. If they fail, the index is rebuilt before anybody uses it.
    pub startup_check: Arc<StartupCheck>,
    /// Puts right what was counted wrong. It sees a rebuilt index that sums up to something else than the journal says,
    /// so some decision was made on an index with a hole in it. What it stages becomes durable together with the true
    /// digest, before anybody reads the index.
    pub recount: Arc<Recount>,
    /// Is told the key of each row that changed, before whoever changed it is answered, and `None` once another index
    /// serves: a damaged one may have shown rows as they were before.
    pub on_change: Arc<OnChange>,
    /// Is told why, once, when nothing more can be promised. The default ends the process.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            min_free: 128 << 20,
            cache_size: 64 << 20,
            first_segment: 256 << 10,
            largest_segment: 64 << 20,
            verify_index: true,
            preallocate: true,
            seal_after: Duration::from_millis(50),
            lock_wait: Duration::from_secs(10),
            instance: random_instance(),
            startup_check: Arc::new(|_| Ok(())),
            recount: Arc::new(|_| Ok(())),
            on_change: Arc::new(|_| ()),
            on_fatal: Arc::new(end_process),
        }
    }
}

/// See [`EngineOptions::check`].
pub type StartupCheck = dyn Fn(&mut Tx<'_>) -> Result<(), StoreError> + Send + Sync;

/// See [`EngineOptions::changed`].
pub type OnChange = dyn Fn(Option<&[u8]>) + Send + Sync;

/// See [`EngineOptions::recount`].
pub type Recount = dyn Fn(&mut Tx<'_>) -> Result<(), StoreError> + Send + Sync;

fn random_instance() -> [u8; 16] {
    let mut instance = [0; 16];
    SystemRandomness::new().fill(&mut instance);
    instance
}

/// What an engine tells of its work, for the log and the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// A file or folder was readable by others; it no longer is.
    PermissionsRepaired { path: String },
    /// One of the two headers of a segment was damaged and has been written again from the other.
    HeaderRepaired { file: String },
    /// What was left of a write nobody was answered for has been moved out of the way.
    TornWriteSaved { file: String, bytes: u64 },
    /// The index is being built anew from the journal, and why.
    Rebuilding { why: String },
    /// Bytes of the journal read, of all there are.
    Progress { done: u64, total: u64 },
    /// The index has been built anew.
    Rebuilt,
    /// There is no room for the index: nothing is read or written until there is.
    NoSpace,
    /// A call of the index takes long, and some thread waits for the disk.
    DiskStalled,
    /// The rebuilt index sums up to something else than the journal says; counters are counted again.
    DigestMismatch { sequence: u64 },
    /// The index was compared with the journal's digest, and agrees.
    Verified,
    /// A background job failed and was dropped.
    JobFailed { why: String },
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
            Self::DiskStalled => f.write_str("the disk is slow: a call of the index is waiting for it"),
            Self::DigestMismatch { sequence } => {
                write!(f, "the index differs from the digest of write {sequence}; counting anew")
            }
            Self::Verified => f.write_str("the index agrees with the digest of the journal"),
            Self::JobFailed { why } => write!(f, "a background job failed and was dropped: {why}"),
        }
    }
}

/// Where events go.
pub type EventSink = Arc<dyn Fn(EngineEvent) + Send + Sync>;

/// Who holds a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The process.
    pub pid: u32,
    /// The URL it serves, if it serves one.
    pub address: Option<String>,
}

/// What is damaged in a journal, and what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalDamage {
    /// The file, relative to the store.
    pub file: String,
    /// Bytes from the beginning of the file.
    pub position: u64,
    /// What was expected there, and what was found.
    pub what: String,
    /// Last sequence that can be read before the damage.
    pub readable_before: u64,
    /// First sequence known to follow the damage.
    pub readable_after: Option<u64>,
}

/// Why a store was not opened. Nothing has been changed in it, but for its lock file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error("the store `{path}` is in use{}", held_by(.holder.as_ref()))]
    Locked { path: PathBuf, holder: Option<LockHolder> },
    /// It was written by another version.
    #[error("the store has format {found}, this version reads formats up to {ours}; use {}", reader(.version.as_deref()))]
    Format {
        found: u32,
        ours: u32,
        /// The version that wrote it, if it says so.
        version: Option<String>,
    },
    /// Its journal is damaged.
    #[error("the journal is damaged: {} at byte {}: {}; {}", .0.file, .0.position, .0.what, readable(.0))]
    Damaged(Box<JournalDamage>),
    /// There is no room to open it.
    #[error("there is no room on the disk to open the store; free some and try again")]
    NoSpace,
    /// Not even an empty index could be opened.
    #[error("the index of the store cannot be opened: {0}")]
    Index(String),
    /// The operating system refused.
    #[error("cannot {doing}")]
    Io {
        /// The step, for people.
        doing: String,
        /// The cause.
        source: io::Error,
    },
}

fn reader(version: Option<&str>) -> String {
    version.map_or("the version of forms that wrote it".to_owned(), |version| {
        format!("forms {version} or newer")
    })
}

fn held_by(holder: Option<&LockHolder>) -> String {
    match holder {
        Some(LockHolder { pid, address: Some(address) }) => {
            format!(" by process {pid}, which serves {address}; use --url {address}, or stop it")
        }
        Some(LockHolder { pid, address: None }) => format!(" by process {pid}; wait for it or stop it"),
        None => " by another process; wait for it or stop it".to_owned(),
    }
}

fn readable(damage: &JournalDamage) -> String {
    let before = match damage.readable_before {
        0 => "nothing before it can be read".to_owned(),
        last => format!("everything up to change {last} can be read"),
    };
    match damage.readable_after {
        Some(first) => format!("{before}, and from change {first} on; restore a backup"),
        None => format!("{before}; restore a backup"),
    }
}
