//! What can go wrong in a store. Absence and refusal are no errors: they are values.

use std::io;

/// A store could not do its work. Nothing of the operation has happened, unless said otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Too many writes are waiting; the same request may succeed in a moment.
    #[error("the store is busy")]
    Busy,
    /// Too many long reads are queued; the same request may succeed in a moment.
    #[error("too much work is queued")]
    Overloaded,
    /// The store is starting, being rebuilt, or stopping.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// Less room is left on the disk than `--min-free` keeps.
    #[error("the disk is full")]
    Full,
    /// A value could not be read back as it was written. The index is going to be rebuilt.
    #[error("a stored value is damaged: {0}")]
    Damaged(String),
    /// A value is missing that another one needs. The index is verified, once.
    #[error("a stored value is missing: {0}")]
    Missing(String),
    /// A value is intact, and this version of the program cannot decode it.
    #[error("a stored value cannot be decoded: {0}")]
    Undecodable(String),
    /// The operation panicked; its changes were dropped.
    #[error("an operation on the store panicked: {0}")]
    Panicked(String),
    /// Input or output failed. Whether the operation has happened is not known.
    #[error("input/output of the store failed")]
    Io(#[from] io::Error),
}
