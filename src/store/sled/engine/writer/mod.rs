//! The single writer of a store: stages operations, commits a group of them, applies it to the index, answers.
//!
//! It decides nothing by a clock and has no thread of its own, so that tests can drive it step by step.

mod compaction;
mod recovery;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::store::sled::engine::applied_frame::AppliedFrame;
use crate::store::sled::engine::compaction::Compaction;
use crate::store::sled::engine::digest::IndexDigest;
use crate::store::sled::engine::disk::{Disk, StoreLock};
use crate::store::sled::engine::erasures;
use crate::store::sled::engine::group::{CellChange, Group};
use crate::store::sled::engine::index::{Index, IndexProvider};
use crate::store::sled::engine::journal::Journal;
use crate::store::sled::engine::open::{self, Env};
use crate::store::sled::engine::operation::{self, WriteKind, WriteOperation};
use crate::store::sled::engine::options::{EngineOptions, EventSink, OpenError};
use crate::store::sled::engine::reader::Reader;
use crate::store::sled::engine::rebuild::INDEX;
use crate::store::sled::engine::replay;
use crate::store::sled::engine::state::{StateFile, Trust};
use crate::store::sled::engine::tx::Tx;
use crate::store::sled::engine::verify::IndexVerifier;
use crate::store::{Result, StoreError, StoreHealth};

/// The writing side of an open store.
pub struct Writer {
    env: Env,
    pub(super) lock: Arc<dyn StoreLock>,
    state: StateFile,
    pub(super) journal: Journal,
    /// `None` while there is no space for it, and once the writer has stopped.
    index: Option<Arc<dyn Index>>,
    /// Why the index must be rebuilt once there is space.
    rebuild_reason: Option<String>,
    is_stopped: bool,
    reader: Reader,
    digest: IndexDigest,
    /// Changes of the operations that wait for [`Writer::commit`].
    pub(super) group: Group,
    pub(super) waiting: Vec<(Box<dyn WriteOperation>, Result<()>)>,
    /// Free space in bytes when the group was started.
    free: u64,
    verifier: Option<IndexVerifier>,
    /// Callers that wait for the end of a verification.
    verifications: Vec<oneshot::Sender<Option<String>>>,
    compaction: Option<Compaction>,
    /// Whether something was erased since the last compaction began.
    has_erased: bool,
    /// The last frame that only the base has, and the size of the base's rows in bytes.
    compacted: u64,
    base_bytes: u64,
    /// A read was damaged, and the index is being verified.
    is_suspect: bool,
    /// Bytes written to the journal since the last flush of the index.
    pub(super) unflushed: u64,
}

/// Limits of a group.
const GROUP_OPERATIONS: usize = 512;
const GROUP_ROWS: usize = 1000;
const GROUP_BYTES: usize = 1 << 20;

impl Writer {
    /// Opens the store on a disk, creating it if missing.
    ///
    /// # Errors
    /// See [`OpenError`]. Acknowledged writes are never dropped to open a store.
    pub fn open(
        disk: Arc<dyn Disk>,
        indexes: Arc<dyn IndexProvider>,
        options: EngineOptions,
        report: EventSink,
    ) -> Result<Writer, OpenError> {
        let reader = Reader::default();
        let env = Env { disk, indexes, options, report, reader: reader.clone() };
        let opened = open::open(&env)?;
        reader.set_health(StoreHealth::Ready);
        reader.set_index(Arc::clone(&opened.index));
        let verifier = env.options.verify_index.then(IndexVerifier::default);
        let compacted = opened.base.map_or(0, |base| base.erasures);
        let has_erased = erasures::number(&*opened.index)? > compacted;
        let mut writer = Writer {
            lock: Arc::from(opened.lock),
            state: opened.state,
            journal: opened.journal,
            index: Some(opened.index),
            rebuild_reason: None,
            is_stopped: false,
            reader,
            digest: opened.applied.digest,
            group: Group::default(),
            waiting: Vec::new(),
            free: 0,
            verifier,
            verifications: Vec::new(),
            compaction: None,
            has_erased,
            compacted: opened.base.map_or(0, |base| base.sequence),
            base_bytes: opened.base.map_or(0, |base| base.bytes),
            is_suspect: false,
            unflushed: 0,
            env,
        };
        writer.measure_free_space();
        Ok(writer)
    }

    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.env.disk
    }

    /// Whether the writer has failed or was closed.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Runs an operation and adds it to the group, to be answered by [`Writer::commit`].
    pub fn stage(&mut self, mut operation: Box<dyn WriteOperation>) {
        let Some(index) = self.index.clone() else {
            let error = if self.is_stopped { stopped() } else { StoreError::Full };
            return operation.answer(Err(error));
        };
        if self.waiting.is_empty() {
            self.measure_free_space();
        }
        let outcome = self.run(&mut *operation, &*index);
        self.waiting.push((operation, outcome));
    }

    fn run(&mut self, operation: &mut dyn WriteOperation, index: &dyn Index) -> Result<()> {
        let mut tx = Tx::new(index, &self.group);
        self.reader.track_damage(operation::run(operation, &mut tx))?;
        let changes = tx.into_changes();
        if !changes.is_empty() && !self.has_space(operation.kind()) {
            return Err(StoreError::Full);
        }
        self.reader.track_damage(self.group.join(changes, index))
    }

    /// Whether the group accepts no more operations.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= GROUP_OPERATIONS
            || self.group.rows() >= GROUP_ROWS
            || self.group.bytes >= GROUP_BYTES
    }

    /// Makes the group durable and visible, then answers its operations. After a failure none is answered.
    pub fn commit(&mut self) {
        let group = std::mem::take(&mut self.group);
        let waiting = std::mem::take(&mut self.waiting);
        let changes = group.into_changes(self.journal.next_sequence());
        let written = self.write(&changes);
        let has_space = match written {
            Ok(()) => {
                if !changes.is_empty() {
                    (self.env.options.on_group)(waiting.len());
                }
                true
            }
            Err(OpenError::NoSpace) => false,
            Err(error) => return self.fail(&error),
        };
        for (operation, outcome) in waiting {
            operation.answer(if has_space { outcome } else { Err(StoreError::Full) });
        }
    }

    fn write(&mut self, changes: &[CellChange]) -> Result<(), OpenError> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut digest = self.digest;
        for change in changes {
            digest.replace(change.old, change.new);
        }
        self.journal.append(&mut self.state, changes, digest)?;
        self.unflushed += self.journal.last().length as u64;
        self.has_erased |= changes.iter().any(|change| change.key == erasures::KEY);
        self.digest = digest;
        self.apply(changes);
        changes.iter().for_each(|change| (self.env.options.on_change)(Some(&change.key)));
        Ok(())
    }

    /// Applies durable changes to the index. If that fails, they will be applied from the journal.
    fn apply(&mut self, changes: &[CellChange]) {
        let Some(index) = &self.index else { return };
        let sequence = self.journal.last().position.sequence;
        let applied = AppliedFrame { sequence, digest: self.digest };
        match replay::apply(&**index, changes, applied) {
            Ok(()) => {
                if let Some(verifier) = &mut self.verifier {
                    changes.iter().for_each(|change| verifier.follow(change));
                }
                if let Some(compaction) = &mut self.compaction {
                    compaction.follow(changes);
                }
            }
            Err(error) => self.recover(&error),
        }
    }

    /// Whether damage to the last frame could be mistaken for a torn write.
    pub fn is_unsealed(&self) -> bool {
        let last = self.journal.last();
        !self.is_stopped() && last.position.sequence > 0 && !last.is_seal
    }

    pub fn seal(&mut self) {
        let sealed = self.journal.seal(&mut self.state, self.digest);
        match sealed.map(|()| self.apply(&[])) {
            // Without space for a segment there is none for a seal; durable frames are safe.
            Ok(()) | Err(OpenError::NoSpace) => {}
            Err(error) => self.fail(&error),
        }
    }

    /// Flushes the index, so that a start after the death of the process has little to replay.
    pub fn flush(&mut self) {
        self.unflushed = 0;
        if let Some(Err(error)) = self.index.as_ref().map(|index| index.flush()) {
            self.recover(&error);
        }
    }

    /// Whether the disk was too full for writes at the last check.
    pub fn is_low_on_space(&self) -> bool {
        self.index.is_none() || self.reader.is_out_of_space() || !self.has_space(WriteKind::Normal)
    }

    fn has_space(&self, kind: WriteKind) -> bool {
        let min_free = self.env.options.min_free;
        match kind {
            WriteKind::Normal | WriteKind::Large => self.free >= min_free,
            WriteKind::Reclaim => self.free >= min_free / 2,
        }
    }

    /// Stops after a failure: no operation is answered any more, and the next start repairs.
    fn fail(&mut self, error: &OpenError) {
        let why = error.with_cause();
        (self.index, self.verifier, self.compaction, self.is_stopped) = (None, None, None, true);
        self.waiting.clear();
        self.state.trust = Trust::None;
        // If this fails too, the next start decides by the content of the disk.
        drop(self.state.write(&*self.env.disk));
        self.reader.set_health(StoreHealth::Stopped(why.clone()));
        (self.env.options.on_fatal)(&why);
    }

    /// Stops cleanly: the next start trusts the index without reading the journal, unless the index is suspect, or
    /// detached because the disk is full.
    ///
    /// # Errors
    /// If something could not be made durable. Acknowledged writes are safe; the next start repairs.
    pub fn close(&mut self) -> Result<()> {
        if self.is_unsealed() {
            self.seal();
        }
        if self.is_stopped {
            return Err(stopped());
        }
        self.journal.stop().map_err(|error| StoreError::Unavailable(error.with_cause()))?;
        if self.reader.take_damage_flag() || self.is_suspect || self.rebuild_reason.is_some() {
            self.state.trust = Trust::None;
            self.state.write(&*self.env.disk)?;
            self.index = None;
        }
        let Some(index) = self.end() else { return Ok(()) };
        let closed = self.env.indexes.close(INDEX, index);
        closed.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.record_clean_end()
    }

    /// Stops as if the process was killed: durable frames are safe, and the trust in the index is not recorded.
    pub fn abandon(&mut self) {
        drop(self.journal.stop());
        drop(self.end());
    }

    /// Detaches the index from readers and stops.
    fn end(&mut self) -> Option<Arc<dyn Index>> {
        drop(self.reader.take_index());
        (self.verifier, self.compaction, self.is_stopped) = (None, None, true);
        self.reader.set_health(StoreHealth::Stopped("it was closed".to_owned()));
        self.index.take().map(wait_until_unused)
    }

    fn record_clean_end(&mut self) -> Result<()> {
        let end = self.journal.last();
        if let Some(identity) = self.env.indexes.identity(INDEX).filter(|_| end.is_seal) {
            self.state.floor = end.position;
            self.state.trust = Trust::Clean { end: end.position, identity: identity.text };
            self.state.write(&*self.env.disk)?;
        }
        Ok(())
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("it has stopped".to_owned())
}

/// Waits until no reader uses the index; reads are short.
fn wait_until_unused(index: Arc<dyn Index>) -> Arc<dyn Index> {
    while Arc::strong_count(&index) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    index
}
