//! Compaction: the rows of the index become a new [`base`], and the segments before it are removed.
//!
//! The rows are read in slices between groups. Their digest, updated with every change made meanwhile, must equal the journal's;
//! otherwise the base is not installed. Nothing is removed before the base is durable and the index is flushed: after a crash at
//! any point, the old segments or the base have everything. After an erasure, the rows also become a new index: a [`Renewal`].

use std::io;

use super::base::{self, Base, BaseWriter};
use super::digest::IndexDigest;
use super::discover::{JournalEnd, io_error};
use super::disk::Disk;
use super::erasures;
use super::frame::FrameChanges;
use super::group::CellChange;
use super::index::{Index, IndexError};
use super::open::Env;
use super::options::OpenError;
use super::rebuild::remove_unused;
use super::renewal::Renewal;
use super::segment::{self, JOURNAL};
use super::verify::IndexVerifier;

/// A compaction in progress.
pub(crate) struct Compaction {
    verifier: IndexVerifier,
    base: BaseWriter,
    /// If something was erased since the index was built.
    pub(crate) renewal: Option<Renewal>,
}

/// Why a slice failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompactionError {
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The base could not be written, or an old index could not be removed. Nothing has changed.
    #[error(transparent)]
    Files(#[from] io::Error),
}

impl Compaction {
    /// Begins a compaction of a journal whose newest segment, at its `end`, has no frame yet.
    pub(crate) fn begin(
        env: &Env,
        index: &dyn Index,
        end: &JournalEnd,
    ) -> Result<Compaction, CompactionError> {
        remove_unused(env)?;
        let has_erased = erasures::built(index)? < erasures::number(index)?;
        let renewal = has_erased.then(|| Renewal::begin(env));
        Ok(Compaction { renewal, ..Compaction::of_base(&*env.disk, index, end)? })
    }

    /// Begins to write a base, and no new index.
    pub(crate) fn of_base(
        disk: &dyn Disk,
        index: &dyn Index,
        end: &JournalEnd,
    ) -> Result<Compaction, CompactionError> {
        let base = BaseWriter::begin(disk, end, erasures::number(index)?)?;
        Ok(Compaction { verifier: IndexVerifier::default(), base, renewal: None })
    }

    /// Copies the next rows, at least `rows` of them. After the last one, returns the digest of the whole index.
    pub(crate) fn slice(
        &mut self,
        index: &dyn Index,
        rows: usize,
    ) -> Result<Option<IndexDigest>, CompactionError> {
        let base = &mut self.base;
        let begun = base.block.len();
        let digest = self.verifier.slice_with(index, rows, |key, cell| {
            if !erasures::is_about_index(key) {
                base.push(key, cell);
            }
        })?;
        if let Some(renewal) = &mut self.renewal {
            renewal.apply(FrameChanges::new(&base.block[begun..]));
        }
        base.write_if_full()?;
        Ok(digest)
    }

    /// Accounts for changes of the index.
    pub(crate) fn follow(&mut self, changes: &[CellChange]) {
        changes.iter().for_each(|change| self.verifier.follow(change));
        if let Some(renewal) = &mut self.renewal {
            renewal.apply(changes.iter().map(CellChange::as_change));
        }
    }

    /// Gives up: what is unfinished is removed.
    pub(crate) fn discard(self, env: &Env) {
        self.base.discard(&*env.disk);
        drop(self.renewal);
        // If that fails, the next compaction or start does it.
        drop(remove_unused(env));
    }

    /// Makes the base durable under its name.
    pub(crate) fn install(&mut self, disk: &dyn Disk) -> io::Result<Base> {
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
