//! A store that reports what it reads from its index and what it writes there.

use std::ops::Bound;
use std::sync::Arc;

use forms::cpu_pool::CpuPool;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Change, Index, IndexError, IndexProvider};
use forms::store::sled::engine::state::IndexIdentity;
use forms::store::sled::engine::tx::Direction;

use super::machine::Machine;
use super::model_index::ModelIndexes;
use crate::store::SeededRandom;

/// Called with each key before it is read, with the start of each range, and with each key that is found in it.
type OnRead = dyn Fn(&[u8]) + Send + Sync;

/// Called with the keys that are written together.
type OnWrite = dyn Fn(Vec<Vec<u8>>) + Send + Sync;

struct ObservedIndexes {
    indexes: ModelIndexes,
    on_read: Arc<OnRead>,
    on_write: Arc<OnWrite>,
}

struct ObservedIndex {
    index: Arc<dyn Index>,
    on_read: Arc<OnRead>,
    on_write: Arc<OnWrite>,
}

/// Opens the store of a machine, which calls `on_read` for what it reads; of a range, before the index is locked.
pub(super) fn open_observed(machine: &Machine, on_read: impl Fn(&[u8]) + Send + Sync + 'static) -> SledStore {
    open_with(machine, Arc::new(on_read), Arc::new(|_| ()))
}

/// Opens the store of a machine, which calls `on_write` with the keys that it writes.
pub(super) fn open_written(
    machine: &Machine,
    on_write: impl Fn(Vec<Vec<u8>>) + Send + Sync + 'static,
) -> SledStore {
    open_with(machine, Arc::new(|_| ()), Arc::new(on_write))
}

fn open_with(machine: &Machine, on_read: Arc<OnRead>, on_write: Arc<OnWrite>) -> SledStore {
    let indexes = ObservedIndexes { indexes: machine.indexes.clone(), on_read, on_write };
    let mut options = machine.options();
    options.verify_index = false;
    let (disk, random) = (Arc::new(machine.disk.clone()), Arc::new(SeededRandom::new(1)));
    let report = machine.event_log.report();
    SledStore::open_disk(disk, Arc::new(indexes), options, CpuPool::default(), random, report).unwrap()
}

impl IndexProvider for ObservedIndexes {
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError> {
        let index = self.indexes.open(folder)?;
        let (on_read, on_write) = (Arc::clone(&self.on_read), Arc::clone(&self.on_write));
        Ok(Arc::new(ObservedIndex { index, on_read, on_write }))
    }

    fn close(&self, folder: &str, index: Arc<dyn Index>) -> Result<(), IndexError> {
        self.indexes.close(folder, index)
    }

    fn sync_data(&self, folder: &str) -> std::io::Result<()> {
        self.indexes.sync_data(folder)
    }

    fn identity(&self, folder: &str) -> Option<IndexIdentity> {
        self.indexes.identity(folder)
    }

    fn size(&self, folder: &str) -> u64 {
        self.indexes.size(folder)
    }

    fn remove(&self, folder: &str) -> std::io::Result<()> {
        self.indexes.remove(folder)
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.indexes.rename(from, to)
    }
}

impl Index for ObservedIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        (self.on_read)(key);
        self.index.get(key)
    }

    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError> {
        if let Bound::Included(start) | Bound::Excluded(start) = start {
            (self.on_read)(start);
        }
        self.index.range(start, end, direction, &mut |key, cell| {
            (self.on_read)(key);
            visit(key, cell)
        })
    }

    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError> {
        let mut keys = Vec::new();
        self.index.apply(&mut changes.inspect(|change| keys.push(change.key.to_vec())))?;
        (self.on_write)(keys);
        Ok(())
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.index.flush()
    }
}
