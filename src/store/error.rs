//! Errors of a store. Absence and refusal are values, not errors.

use std::io;

/// Result of an operation on a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// Whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Busy
                | Self::Overloaded
                | Self::Unavailable(_)
                | Self::Interrupted(_)
                | Self::Full
                | Self::Damaged(_)
        )
    }
}

/// Failure of a store. The operation has had no effect, unless the variant documents otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Too many writes are queued; a retry may succeed shortly.
    #[error("the store is busy")]
    Busy,
    /// Too many long reads are queued; a retry may succeed shortly.
    #[error("too much work is queued")]
    Overloaded,
    /// The store is starting, being rebuilt, or stopping.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The database has interrupted the operation. A store carries it out again, and reports
    /// [`Unavailable`](Self::Unavailable) if that takes too long.
    #[error("the database has interrupted the operation: {0}")]
    Interrupted(String),
    /// Free disk space is below `--min-free`.
    #[error("the disk is full")]
    Full,
    /// A stored value is corrupt. The index will be rebuilt.
    #[error("a stored value is damaged: {0}")]
    Damaged(String),
    /// A referenced value is missing. The index is verified, once.
    #[error("a stored value is missing: {0}")]
    Missing(String),
    /// A value is intact, but this version of the program cannot decode it.
    #[error("a stored value cannot be decoded: {0}")]
    Undecodable(String),
    /// The operation panicked; its changes were dropped.
    #[error("an operation on the store panicked: {0}")]
    Panicked(String),
    /// This kind of store cannot do that, for this reason.
    #[error("{0}")]
    Unsupported(&'static str),
    /// An I/O error. The operation may or may not have been applied.
    #[error("input/output of the store failed")]
    Io(#[from] io::Error),
}
