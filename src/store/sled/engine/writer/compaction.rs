//! Compaction as a part of the writer's background work.

use super::Writer;
use crate::store::StoreUsage;
use crate::store::sled::engine::compaction::{Compaction, CompactionError, remove_compacted};
use crate::store::sled::engine::options::{EngineEvent, OpenError};
use crate::store::sled::engine::rebuild::INDEX;
use crate::store::sled::engine::segment::JOURNAL;

impl Writer {
    /// Whether a compaction is in progress.
    pub fn is_compacting(&self) -> bool {
        self.compaction.is_some()
    }

    /// Whether the segments since the last compaction have grown larger than what that left, and large enough to matter.
    pub fn is_compaction_due(&self) -> bool {
        let Some(least) = self.env.options.compact_after else { return false };
        !self.is_compacting() && self.journal.closed_bytes() > least.max(self.base_bytes)
    }

    /// Returns the last write that only the base has; 0 before the first compaction.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Whether something was erased since the last compaction began.
    pub fn has_erased(&self) -> bool {
        self.has_erased
    }

    /// Returns the disk space that the store takes. Files that cannot be read count as empty.
    pub fn usage(&self) -> StoreUsage {
        let (disk, indexes) = (&*self.env.disk, &self.env.indexes);
        let size =
            |name: String| Some(disk.open(&format!("{JOURNAL}/{name}")).ok()?.size().unwrap_or_default());
        StoreUsage {
            journal_bytes: disk.list(JOURNAL).unwrap_or_default().into_iter().filter_map(size).sum(),
            index_bytes: indexes.size(INDEX),
            free_bytes: Some(disk.free_space().unwrap_or_default()),
            is_compacting: self.is_compacting(),
            compacted_ago: None,
            erasure_due_in: None,
        }
    }

    /// Begins a compaction. Does nothing if one is in progress, if nothing was written since the last, or without an index.
    pub fn begin_compaction(&mut self) {
        if self.is_compacting() || self.index.is_none() {
            return;
        }
        if let Err(error) = self.journal.end_segment(&mut self.state) {
            return if let OpenError::NoSpace = error {
                self.cancel_compaction(&error.to_string())
            } else {
                self.fail(&error)
            };
        }
        let end = self.journal.end();
        if end.last.position.sequence == self.compacted {
            self.has_erased = false;
            return;
        }
        let Some(index) = &self.index else { return };
        match Compaction::begin(&self.env, &**index, &end) {
            Ok(begun) => (self.compaction, self.has_erased) = (Some(begun), false),
            Err(CompactionError::Index(error)) => self.recover(&error),
            Err(CompactionError::Files(error)) => self.cancel_compaction(&error.to_string()),
        }
    }

    /// Copies the next rows of the index, and completes the compaction after the last. The space that is kept free is not used.
    pub fn compact(&mut self, rows: usize) {
        if self.is_low_on_space() {
            return self.cancel_compaction("less disk space is free than --min-free");
        }
        let (Some(compaction), Some(index)) = (&mut self.compaction, &self.index) else { return };
        match compaction.slice(&**index, rows) {
            Ok(None) => {}
            Ok(Some(digest)) if digest == self.digest => self.complete_compaction(),
            Ok(Some(_)) => self.replace_index("the index does not match the journal"),
            Err(CompactionError::Index(error)) => self.recover(&error),
            Err(CompactionError::Files(error)) => self.cancel_compaction(&error.to_string()),
        }
    }

    fn complete_compaction(&mut self) {
        let Some(compaction) = &mut self.compaction else { return };
        let base = match compaction.install(&*self.env.disk) {
            Ok(base) => base,
            Err(error) => return self.cancel_compaction(&error.to_string()),
        };
        let before = self.base_bytes + self.journal.closed_bytes();
        (self.compacted, self.base_bytes) = (base.sequence, base.bytes);
        self.journal.compacted(&base);
        // An index that is older than the journal would have to be rebuilt.
        self.flush();
        if self.index.is_none() {
            return;
        }
        match remove_compacted(&*self.env.disk) {
            Ok(()) => (self.env.report)(EngineEvent::Compacted { before, after: base.size }),
            Err(error) => self.repeat_compaction(EngineEvent::CompactionFailed { why: error.with_cause() }),
        }
        // If the index was rebuilt, there is no renewal any more.
        if let Some(renewal) = self.compaction.take().and_then(|compaction| compaction.renewal) {
            self.renew_index(renewal, base.erasures);
        }
    }

    /// Reports that what was erased remains in a file. The next compaction is due even if nothing is written until then.
    pub(super) fn repeat_compaction(&mut self, why: EngineEvent) {
        (self.has_erased, self.compacted) = (true, 0);
        (self.env.report)(why);
    }

    pub(super) fn discard_compaction(&mut self) {
        if let Some(compaction) = self.compaction.take() {
            compaction.discard(&self.env);
            (self.has_erased, self.compacted) = (true, 0);
        }
    }

    /// Gives up a compaction that cannot be completed now; it is due again when the journal has grown as much again.
    fn cancel_compaction(&mut self, why: &str) {
        self.discard_compaction();
        self.journal.reset_closed_bytes();
        self.repeat_compaction(EngineEvent::CompactionFailed { why: why.to_owned() });
    }
}
