//! Compaction: the rows of the index become a new [`base`], and the segments before it are removed.
//!
//! The rows are read in slices between groups. Their digest, updated with every change made meanwhile, must equal the journal's;
//! otherwise the base is not installed. Nothing is removed before the base is durable and the index is flushed: after a crash at
//! any point, the old segments or the base have everything.

use std::io;

use super::base::{self, Base, BaseWriter};
use super::digest::IndexDigest;
use super::discover::{JournalEnd, io_error};
use super::disk::Disk;
use super::erasures;
use super::group::CellChange;
use super::index::{Index, IndexError};
use super::options::OpenError;
use super::segment::{self, JOURNAL};
use super::verify::IndexVerifier;

/// A compaction in progress.
pub(crate) struct Compaction {
    verifier: IndexVerifier,
    base: BaseWriter,
}

/// Why a slice failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompactionError {
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The base could not be written. Nothing has changed.
    #[error(transparent)]
    Base(#[from] io::Error),
}

impl Compaction {
    /// Begins a compaction of a journal whose newest segment, at its `end`, has no frame yet.
    pub(crate) fn begin(
        disk: &dyn Disk,
        index: &dyn Index,
        end: &JournalEnd,
    ) -> Result<Compaction, CompactionError> {
        let base = BaseWriter::begin(disk, end, erasures::number(index)?)?;
        Ok(Compaction { verifier: IndexVerifier::default(), base })
    }

    /// Copies the next rows, at least `rows` of them. After the last one, returns the digest of the whole index.
    pub(crate) fn slice(
        &mut self,
        index: &dyn Index,
        rows: usize,
    ) -> Result<Option<IndexDigest>, CompactionError> {
        let base = &mut self.base;
        let digest = self.verifier.slice_with(index, rows, |key, cell| {
            if !erasures::is_about_index(key) {
                base.push(key, cell);
            }
        })?;
        base.write_if_full()?;
        Ok(digest)
    }

    /// Accounts for a change of the index.
    pub(crate) fn follow(&mut self, change: &CellChange) {
        self.verifier.follow(change);
    }

    /// Gives up: the unfinished base is removed.
    pub(crate) fn discard(self, disk: &dyn Disk) {
        self.base.discard(disk);
    }

    /// Makes the base durable under its name.
    pub(crate) fn install(self, disk: &dyn Disk) -> io::Result<Base> {
        self.base.install(disk)
    }
}

/// Removes the segments and the bases before the newest base, the oldest first.
pub(crate) fn remove_compacted(disk: &dyn Disk) -> Result<(), OpenError> {
    let names = disk.list(JOURNAL).map_err(io_error("list `journal`"))?;
    let Some(newest) = names.iter().filter_map(|name| base::ordinal(name)).max() else { return Ok(()) };
    let segments = names.iter().filter_map(|name| segment::ordinal(name)).filter(|ordinal| *ordinal < newest);
    let bases = names.iter().filter_map(|name| base::ordinal(name)).filter(|ordinal| *ordinal < newest);
    let mut compacted: Vec<_> = segments.map(segment::path).chain(bases.map(base::path)).collect();
    compacted.sort_unstable();
    let remove = || {
        compacted.iter().try_for_each(|path| disk.remove(path))?;
        if compacted.is_empty() { Ok(()) } else { disk.sync_folder(JOURNAL) }
    };
    remove().map_err(io_error("remove what was compacted of the journal"))
}
