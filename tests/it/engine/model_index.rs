//! A model of an index that loses at least as much in a crash as sled.
//!
//! A crash of the process reverts it to any change since its last flush; a crash of the machine, to any mixture of
//! old, new and missing rows, unless it was closed.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use forms::store::sled::engine::index::{Change, Index, IndexError, IndexProvider};
use forms::store::sled::engine::state::IndexIdentity;
use forms::store::sled::engine::tx::Direction;

use super::fault_injector::FaultInjector;
use crate::harness::stored_text::contains;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Row = (Vec<u8>, Option<Vec<u8>>);

/// Called with each key before it is read, with the start of each range before the index is locked, and with each key
/// that is found in it.
type OnRead = dyn Fn(&[u8]) + Send + Sync;

/// Called with the keys that are written together.
type OnWrite = dyn Fn(Vec<Vec<u8>>) + Send + Sync;

/// Sees what is read from an index and written to it.
#[derive(Clone)]
pub(crate) struct Observer {
    on_read: Arc<OnRead>,
    on_write: Arc<OnWrite>,
}

impl Observer {
    pub(crate) fn none() -> Self {
        Self { on_read: Arc::new(|_| ()), on_write: Arc::new(|_| ()) }
    }

    pub(crate) fn of_reads(on_read: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { on_read: Arc::new(on_read), ..Self::none() }
    }

    pub(crate) fn of_writes(on_write: impl Fn(Vec<Vec<u8>>) + Send + Sync + 'static) -> Self {
        Self { on_write: Arc::new(on_write), ..Self::none() }
    }
}

/// The indexes of one machine; clones share them.
#[derive(Clone)]
pub(crate) struct ModelIndexes {
    pub(crate) observer: Observer,
    faults: FaultInjector,
    folders: Arc<Mutex<Folders>>,
}

#[derive(Default)]
struct Folders {
    by_name: BTreeMap<String, Arc<Mutex<Tree>>>,
    created: u64,
    fails_to_sync: bool,
}

#[derive(Default)]
struct Tree {
    identity: u64,
    /// The rows at the last close.
    durable: Map,
    flushed: Map,
    current: Map,
    since_flush: Vec<Row>,
    /// Every cell ever written: deleted ones remain in the file.
    written: Vec<Vec<u8>>,
    is_closed: bool,
    /// Opening fails.
    is_broken: bool,
    /// Writes fail; opening and reading work.
    is_damaged: bool,
    /// A write found no disk space: everything fails until the index is opened again, as with sled.
    is_full: bool,
}

impl ModelIndexes {
    pub(crate) fn new(faults: FaultInjector) -> ModelIndexes {
        ModelIndexes { observer: Observer::none(), faults, folders: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap()
    }

    pub(crate) fn crash_process(&self) {
        for tree in self.lock().by_name.values() {
            tree.lock().unwrap().crash_process(&self.faults);
        }
    }

    pub(crate) fn crash_machine(&self) {
        for tree in self.lock().by_name.values() {
            tree.lock().unwrap().crash_machine(&self.faults);
        }
    }

    /// Whether the file of an index has `text`.
    pub(crate) fn has_text(&self, text: &[u8]) -> bool {
        let has_text = |cell: &Vec<u8>| contains("", cell, text);
        self.lock().by_name.values().any(|tree| tree.lock().unwrap().written.iter().any(has_text))
    }

    /// Returns the keys that were written to the serving index since its last flush, in order.
    pub(crate) fn unflushed_keys(&self) -> Vec<Vec<u8>> {
        let folders = self.lock();
        let tree = folders.by_name["index"].lock().unwrap();
        tree.since_flush.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Changes the serving index without the engine.
    pub(crate) fn tamper(&self, change: impl FnOnce(&mut Map)) {
        change(&mut self.lock().by_name["index"].lock().unwrap().current);
    }

    /// Replaces the serving index by a copy: the same rows in another file.
    pub(crate) fn replace_by_copy(&self) {
        let mut folders = self.lock();
        folders.created += 1;
        let created = folders.created;
        folders.by_name["index"].lock().unwrap().identity = created;
    }

    /// Makes each write to the serving index fail, as sled does when it finds damage.
    pub(crate) fn damage(&self) {
        self.lock().by_name["index"].lock().unwrap().is_damaged = true;
    }

    /// Makes the serving index fail as on a full disk.
    pub(crate) fn fill(&self) {
        self.lock().by_name["index"].lock().unwrap().is_full = true;
    }

    /// Makes each sync of an index in use fail from now on.
    pub(crate) fn fail_to_sync(&self) {
        self.lock().fails_to_sync = true;
    }
}

fn to_index_error(error: io::Error) -> IndexError {
    match error.kind() {
        io::ErrorKind::StorageFull => IndexError::NoSpace,
        _ => IndexError::Failed(error.to_string()),
    }
}

impl IndexProvider for ModelIndexes {
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError> {
        self.faults.next_call().map_err(to_index_error)?;
        let mut folders = self.lock();
        if !folders.by_name.contains_key(folder) {
            folders.created += 1;
            let tree = Tree { identity: folders.created, ..Tree::default() };
            folders.by_name.insert(folder.to_owned(), Arc::new(Mutex::new(tree)));
        }
        let tree = Arc::clone(&folders.by_name[folder]);
        let mut open = tree.lock().unwrap();
        if open.is_broken {
            return Err(IndexError::Failed("cannot be opened".to_owned()));
        }
        open.is_closed = false;
        open.is_full = false;
        drop(open);
        Ok(Arc::new(ModelIndex { observer: self.observer.clone(), faults: self.faults.clone(), tree }))
    }

    fn close(&self, folder: &str, index: Arc<dyn Index>) -> Result<(), IndexError> {
        self.faults.next_call().map_err(to_index_error)?;
        drop(index);
        self.lock().by_name[folder].lock().unwrap().close();
        Ok(())
    }

    fn sync_data(&self, _folder: &str) -> io::Result<()> {
        if self.lock().fails_to_sync {
            return Err(io::Error::other("the disk has failed"));
        }
        self.faults.next_call()
    }

    fn identity(&self, folder: &str) -> Option<IndexIdentity> {
        let created = self.lock().by_name.get(folder)?.lock().unwrap().identity;
        Some(IndexIdentity { text: created.to_string(), detects_copies: true })
    }

    fn size(&self, folder: &str) -> u64 {
        u64::from(self.lock().by_name.contains_key(folder))
    }

    fn remove(&self, folder: &str) -> io::Result<()> {
        let result = self.faults.next_call();
        let mut folders = self.lock();
        match &result {
            Ok(()) => drop(folders.by_name.remove(folder)),
            Err(_) => {
                if let Some(tree) = folders.by_name.get(folder) {
                    tree.lock().unwrap().corrupt(&self.faults);
                }
            }
        }
        result
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let result = self.faults.next_call();
        let mut folders = self.lock();
        if (result.is_ok() || self.faults.once_in(2))
            && let Some(tree) = folders.by_name.remove(from)
        {
            folders.by_name.insert(to.to_owned(), tree);
        }
        result
    }
}

impl Tree {
    fn close(&mut self) {
        self.flush();
        self.durable.clone_from(&self.current);
        self.is_closed = true;
    }

    fn flush(&mut self) {
        self.since_flush.clear();
        self.flushed.clone_from(&self.current);
    }

    fn apply(&mut self, row: Row) {
        self.written.extend(row.1.clone());
        apply(&mut self.current, &row);
        self.since_flush.push(row);
    }

    fn crash_process(&mut self, faults: &FaultInjector) {
        if self.is_closed {
            return;
        }
        let kept = faults.below(self.since_flush.len() + 1);
        self.current.clone_from(&self.flushed);
        for row in self.since_flush.drain(..).take(kept) {
            apply(&mut self.current, &row);
        }
        self.flushed.clone_from(&self.current);
    }

    fn crash_machine(&mut self, faults: &FaultInjector) {
        if !self.is_closed {
            self.corrupt(faults);
        }
    }

    fn corrupt(&mut self, faults: &FaultInjector) {
        let mut keys: Vec<_> = self.durable.keys().chain(self.current.keys()).cloned().collect();
        keys.dedup();
        let mut corrupted = Map::new();
        for key in keys {
            let value = match faults.below(3) {
                0 => self.durable.get(&key),
                1 => self.current.get(&key),
                _ => None,
            };
            if let Some(value) = value {
                corrupted.insert(key, value.clone());
            }
        }
        self.since_flush.clear();
        (self.durable, self.flushed, self.current) = (corrupted.clone(), corrupted.clone(), corrupted);
        self.is_broken = faults.once_in(4);
        self.is_closed = false;
    }
}

fn apply(map: &mut Map, (key, cell): &Row) {
    match cell {
        Some(cell) => drop(map.insert(key.clone(), cell.clone())),
        None => drop(map.remove(key)),
    }
}

struct ModelIndex {
    observer: Observer,
    faults: FaultInjector,
    tree: Arc<Mutex<Tree>>,
}

impl ModelIndex {
    fn read(&self) -> Result<MutexGuard<'_, Tree>, IndexError> {
        let tree = self.tree.lock().unwrap();
        self.faults.next_call().map_err(to_index_error)?;
        if tree.is_full { Err(IndexError::NoSpace) } else { Ok(tree) }
    }

    fn write(&self) -> Result<MutexGuard<'_, Tree>, IndexError> {
        let tree = self.read().inspect_err(|error| {
            self.tree.lock().unwrap().is_full |= matches!(error, IndexError::NoSpace);
        })?;
        match tree.is_damaged {
            true => Err(IndexError::Failed("damaged".to_owned())),
            false => Ok(tree),
        }
    }
}

impl Index for ModelIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        (self.observer.on_read)(key);
        Ok(self.read()?.current.get(key).cloned())
    }

    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError> {
        if let Bound::Included(start) | Bound::Excluded(start) = start {
            (self.observer.on_read)(start);
        }
        let tree = self.read()?;
        let mut rows = tree.current.range::<[u8], _>((start, end));
        let mut next = || match direction {
            Direction::Ascending => rows.next(),
            Direction::Descending => rows.next_back(),
        };
        while let Some((key, cell)) = next() {
            (self.observer.on_read)(key);
            if !visit(key, cell) {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError> {
        let mut keys = Vec::new();
        for Change { key, cell } in changes {
            self.write()?.apply((key.to_vec(), cell.map(<[u8]>::to_vec)));
            keys.push(key.to_vec());
        }
        (self.observer.on_write)(keys);
        Ok(())
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.write()?.flush();
        Ok(())
    }
}
