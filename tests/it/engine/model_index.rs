//! An index that forgets as sled does, and worse.
//!
//! When the process dies it falls back to any change since its last flush; when the machine dies, to any mixture of
//! old, new and missing rows, unless it had been closed.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use forms::store::sled::engine::index::{Change, Index, IndexError, IndexProvider};
use forms::store::sled::engine::state::IndexIdentity;
use forms::store::sled::engine::tx::Direction;

use super::fate::{Fate, Lot};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Row = (Vec<u8>, Option<Vec<u8>>);

/// The indexes of one world; clones are the same.
#[derive(Clone)]
pub(crate) struct ModelIndexes {
    fate: Fate,
    folders: Arc<Mutex<Folders>>,
}

#[derive(Default)]
struct Folders {
    by_name: BTreeMap<String, Arc<Mutex<Tree>>>,
    born: u64,
    fails_to_sync: bool,
}

#[derive(Default)]
struct Tree {
    identity: u64,
    /// What was closed or synced whole.
    durable: Map,
    flushed: Map,
    current: Map,
    since_flush: Vec<Row>,
    is_closed: bool,
    /// It cannot be opened any more.
    is_broken: bool,
    /// It can be opened and read, but no longer written.
    is_damaged: bool,
    /// A write found no room: everything fails until it is opened anew, as with sled.
    is_full: bool,
}

impl ModelIndexes {
    pub(crate) fn new(fate: Fate) -> ModelIndexes {
        ModelIndexes { fate, folders: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap()
    }

    /// The process is dead.
    pub(crate) fn lose_process(&self) {
        for tree in self.lock().by_name.values() {
            tree.lock().unwrap().lose_process(&self.fate);
        }
    }

    /// The machine is dead.
    pub(crate) fn lose_machine(&self) {
        for tree in self.lock().by_name.values() {
            tree.lock().unwrap().lose_machine(&self.fate);
        }
    }

    /// Changes the serving index behind the engine's back.
    pub(crate) fn meddle(&self, change: impl FnOnce(&mut Map)) {
        change(&mut self.lock().by_name["index"].lock().unwrap().current);
    }

    /// Puts a copy of the serving index in its place: the same rows in another file.
    pub(crate) fn replace_by_copy(&self) {
        let mut folders = self.lock();
        folders.born += 1;
        let born = folders.born;
        folders.by_name["index"].lock().unwrap().identity = born;
    }

    /// Lets each write to the serving index fail, as sled does where it meets damage.
    pub(crate) fn damage(&self) {
        self.lock().by_name["index"].lock().unwrap().is_damaged = true;
    }

    /// Lets the serving index find no room for what it still has to write.
    pub(crate) fn fill(&self) {
        self.lock().by_name["index"].lock().unwrap().is_full = true;
    }

    /// Lets each sync of an index in use fail from now on.
    pub(crate) fn fail_to_sync(&self) {
        self.lock().fails_to_sync = true;
    }

    fn works(&self) -> io::Result<()> {
        match self.fate.draw() {
            Lot::Works => Ok(()),
            Lot::Fails(error) => Err(error),
        }
    }
}

fn failed(error: io::Error) -> IndexError {
    match error.kind() {
        io::ErrorKind::StorageFull => IndexError::NoSpace,
        _ => IndexError::Failed(error.to_string()),
    }
}

impl IndexProvider for ModelIndexes {
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError> {
        self.works().map_err(failed)?;
        let mut folders = self.lock();
        if !folders.by_name.contains_key(folder) {
            folders.born += 1;
            let tree = Tree { identity: folders.born, ..Tree::default() };
            folders.by_name.insert(folder.to_owned(), Arc::new(Mutex::new(tree)));
        }
        let tree = Arc::clone(&folders.by_name[folder]);
        let mut open = tree.lock().unwrap();
        if open.is_broken {
            return Err(IndexError::Failed("it is broken".to_owned()));
        }
        open.is_closed = false;
        open.is_full = false;
        drop(open);
        Ok(Arc::new(ModelIndex { fate: self.fate.clone(), tree }))
    }

    fn close(&self, folder: &str, index: Arc<dyn Index>) -> Result<(), IndexError> {
        self.works().map_err(failed)?;
        drop(index);
        self.lock().by_name[folder].lock().unwrap().close();
        Ok(())
    }

    fn sync_data(&self, _folder: &str) -> io::Result<()> {
        if self.lock().fails_to_sync {
            return Err(io::Error::other("the disk has failed"));
        }
        self.works()
    }

    fn identity(&self, folder: &str) -> Option<IndexIdentity> {
        let born = self.lock().by_name.get(folder)?.lock().unwrap().identity;
        Some(IndexIdentity { text: born.to_string(), detects_copies: true })
    }

    fn size(&self, folder: &str) -> u64 {
        u64::from(self.lock().by_name.contains_key(folder))
    }

    fn remove(&self, folder: &str) -> io::Result<()> {
        let result = self.works();
        let mut folders = self.lock();
        match &result {
            Ok(()) => drop(folders.by_name.remove(folder)),
            Err(_) => {
                if let Some(tree) = folders.by_name.get(folder) {
                    tree.lock().unwrap().mangle(&self.fate);
                }
            }
        }
        result
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let result = self.works();
        let mut folders = self.lock();
        if (result.is_ok() || self.fate.once_in(2))
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
        apply(&mut self.current, &row);
        self.since_flush.push(row);
    }

    fn lose_process(&mut self, fate: &Fate) {
        if self.is_closed {
            return;
        }
        let kept = fate.below(self.since_flush.len() + 1);
        self.current.clone_from(&self.flushed);
        for row in self.since_flush.drain(..).take(kept) {
            apply(&mut self.current, &row);
        }
        self.flushed.clone_from(&self.current);
    }

    fn lose_machine(&mut self, fate: &Fate) {
        if !self.is_closed {
            self.mangle(fate);
        }
    }

    fn mangle(&mut self, fate: &Fate) {
        let mut keys: Vec<_> = self.durable.keys().chain(self.current.keys()).cloned().collect();
        keys.dedup();
        let mut mangled = Map::new();
        for key in keys {
            let value = match fate.below(3) {
                0 => self.durable.get(&key),
                1 => self.current.get(&key),
                _ => None,
            };
            if let Some(value) = value {
                mangled.insert(key, value.clone());
            }
        }
        self.since_flush.clear();
        (self.durable, self.flushed, self.current) = (mangled.clone(), mangled.clone(), mangled);
        self.is_broken = fate.once_in(4);
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
    fate: Fate,
    tree: Arc<Mutex<Tree>>,
}

impl ModelIndex {
    fn works(&self) -> Result<MutexGuard<'_, Tree>, IndexError> {
        let tree = self.tree.lock().unwrap();
        match self.fate.draw() {
            Lot::Works if tree.is_full => Err(IndexError::NoSpace),
            Lot::Works => Ok(tree),
            Lot::Fails(error) => Err(failed(error)),
        }
    }

    fn write(&self) -> Result<MutexGuard<'_, Tree>, IndexError> {
        let tree = self.works().inspect_err(|error| {
            self.tree.lock().unwrap().is_full |= matches!(error, IndexError::NoSpace);
        })?;
        match tree.is_damaged {
            true => Err(IndexError::Failed("it is damaged".to_owned())),
            false => Ok(tree),
        }
    }
}

impl Index for ModelIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(self.works()?.current.get(key).cloned())
    }

    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError> {
        let tree = self.works()?;
        let mut rows = tree.current.range::<[u8], _>((start, end));
        let mut next = || match direction {
            Direction::Ascending => rows.next(),
            Direction::Descending => rows.next_back(),
        };
        while let Some((key, cell)) = next() {
            if !visit(key, cell) {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError> {
        for Change { key, cell } in changes {
            self.write()?.apply((key.to_vec(), cell.map(<[u8]>::to_vec)));
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.write()?.flush();
        Ok(())
    }
}
