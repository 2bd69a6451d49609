//! The store of a server on real files, opened again and again.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forms::cpu_pool::CpuPool;
use forms::id::Random;
use forms::store::Maintenance;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Change, IndexProvider, SledIndexes};
use forms::store::sled::engine::options::EngineOptions;
use forms::store::sled::engine::tx::Direction;
use tokio::time::timeout;

use super::machine::Rows;
use super::real_files::{EventLog, open, options};
use crate::store::SeededRandom;

/// A folder with a store.
pub(super) struct StoreFolder {
    folder: tempfile::TempDir,
    pub(super) event_log: EventLog,
}

impl StoreFolder {
    pub(super) fn create() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), event_log: EventLog::default() }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn open(&self) -> SledStore {
        self.open_with(Arc::new(SeededRandom::new(1)))
    }

    pub(super) fn open_with(&self, random: Arc<dyn Random>) -> SledStore {
        let options = EngineOptions { verify_index: false, ..options() };
        SledStore::open(self.path(), options, CpuPool::default(), random, self.event_log.report()).unwrap()
    }

    /// All rows of the closed store.
    pub(super) fn rows(&self) -> Rows {
        let (engine, _) = open(self.path());
        let rows = engine.reader().scan(.., Direction::Ascending, usize::MAX).unwrap();
        engine.close().unwrap();
        rows.into_iter().collect()
    }

    /// The keys in the closed store that contain `part`.
    pub(super) fn keys_with(&self, part: &[u8]) -> Vec<Vec<u8>> {
        let contains = |key: &Vec<u8>| key.windows(part.len()).any(|window| window == part);
        self.rows().into_keys().filter(contains).collect()
    }

    /// Opens and closes the store until its background jobs have reached what `is_done` says of the closed store.
    pub(super) async fn reopen_until(&self, is_done: impl Fn() -> bool) {
        let reopening = async {
            while !is_done() {
                self.open().close().await.unwrap();
            }
        };
        timeout(Duration::from_secs(60), reopening).await.expect("the background jobs leave something");
    }
}

/// Closes a store, so that it can be opened again.
pub(super) async fn close(store: SledStore) {
    store.close().await.unwrap();
}

/// Changes the first row of a closed store's index whose key begins with `prefix`; `None` removes it.
pub(super) fn change_row(data: &Path, prefix: &[u8], change: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>) {
    let indexes = SledIndexes::new(data, 4 << 20).unwrap();
    let index = indexes.open("index").unwrap();
    let mut first = None;
    let visit = &mut |key: &[u8], cell: &[u8]| {
        first = Some((key.to_vec(), cell.to_vec()));
        false
    };
    index.range(Bound::Included(prefix), Bound::Unbounded, Direction::Ascending, visit).unwrap();
    let (key, cell) = first.filter(|(key, _)| key.starts_with(prefix)).expect("no row has this prefix");
    let cell = change(&key, &cell);
    index.apply(&mut [Change { key: &key, cell: cell.as_deref() }].into_iter()).unwrap();
    indexes.close("index", index).unwrap();
}

/// Flips a bit in a row, as [`change_row`].
pub(crate) fn damage_row(data: &Path, prefix: &[u8]) {
    change_row(data, prefix, |_, cell| {
        let mut cell = cell.to_vec();
        cell[0] ^= 1;
        Some(cell)
    });
}
