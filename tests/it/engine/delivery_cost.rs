//! What reading a queue costs: by what is asked for, not by what waits.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forms::cpu_pool::CpuPool;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Change, Index, IndexError, IndexProvider};
use forms::store::sled::engine::state::IndexIdentity;
use forms::store::sled::engine::tx::Direction;
use forms::store::{DeliveryPlace, StepResult, Store};

use super::machine::Machine;
use super::model_index::ModelIndexes;
use crate::store::deliveries::{
    begin, deliver_due, failure, finish, form_with, load, send, submit_many, submit_with, waiting_queues,
};
use crate::store::{SeededRandom, at, workspace};

/// Indexes that count the rows that are read.
struct CountingIndexes {
    indexes: ModelIndexes,
    rows: Arc<AtomicUsize>,
}

struct CountingIndex {
    index: Arc<dyn Index>,
    rows: Arc<AtomicUsize>,
}

impl IndexProvider for CountingIndexes {
    fn open(&self, folder: &str) -> Result<Arc<dyn Index>, IndexError> {
        let index = self.indexes.open(folder)?;
        Ok(Arc::new(CountingIndex { index, rows: Arc::clone(&self.rows) }))
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

impl Index for CountingIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.index.get(key)
    }

    fn range(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), IndexError> {
        self.index.range(start, end, direction, &mut |key, cell| {
            self.rows.fetch_add(1, Ordering::Relaxed);
            visit(key, cell)
        })
    }

    fn apply(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), IndexError> {
        self.index.apply(changes)
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.index.flush()
    }
}

#[tokio::test]
async fn a_queue_with_ten_thousand_deliveries_is_read_in_pages() {
    let (machine, rows) = (Machine::new(1), Arc::new(AtomicUsize::new(0)));
    let indexes = CountingIndexes { indexes: machine.indexes.clone(), rows: Arc::clone(&rows) };
    let mut options = machine.options();
    options.verify_index = false;
    let (disk, random) = (Arc::new(machine.disk.clone()), Arc::new(SeededRandom::new(1)));
    let report = machine.event_log.report();
    let store = SledStore::open_disk(disk, Arc::new(indexes), options, CpuPool::default(), random, report);
    let store: Arc<dyn Store> = Arc::new(store.unwrap());
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    // A failed delivery for each of the first thousand, the others in the outbox.
    for _ in 0..2 {
        submit_many(&store, form, 500, 5).await;
    }
    loop {
        let due = load(&*store, queues[0], 10, 500).await.due;
        if due.is_empty() {
            break;
        }
        let begun = begin(&*store, queues[0], send(&due), 10).await;
        finish(&*store, queues[0], begun, failure(), 10).await;
    }
    for _ in 0..18 {
        submit_many(&store, form, 500, 5).await;
    }
    let count = || rows.swap(0, Ordering::Relaxed);
    count();
    let due = load(&*store, queues[0], 11, 10).await.due;
    let of_outbox = count();
    assert_eq!((due.len(), due[0].delivery.attempts), (10, 0));
    let retried = load(&*store, queues[0], 3_600_000, 10).await.due;
    let of_retries = count();
    assert_eq!((retried.len(), retried[0].delivery.attempts), (10, 1));
    begin(&*store, queues[0], send(&due), 12).await;
    let of_begin = count();
    waiting_queues(&*store).await;
    let of_list = count();
    let all = [of_outbox, of_retries, of_begin, of_list];
    assert!(all.iter().all(|rows| *rows < 150), "{all:?}");
    submit_with(&*store, form, 13, true).await;
    assert!(count() < 20, "a submission reads few rows");
    deliver_due(&*store, queues[1], 13, 500).await;
    let totals = store.queue_totals(workspace(1), form).await.unwrap();
    assert_eq!(totals.iter().map(|queue| queue.pending).collect::<Vec<_>>(), [10_001, 0]);
    // Other forms with something in their outboxes.
    for number in 2..100 {
        let (other, _) = form_with(&*store, number, &["one"]).await;
        submit_with(&*store, other, 14, true).await;
    }
    let waiting = load(&*store, queues[0], 15, 100).await.due.pop().unwrap().delivery;
    count();
    let step = store.cancel_delivery(workspace(1), DeliveryPlace::of(&waiting), at(16)).await.unwrap();
    assert!(matches!(step, StepResult::Done(_)), "{step:?}");
    assert!(count() < 60, "a delivery whose place is known is changed without a search");
}
