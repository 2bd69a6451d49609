//! A model of a machine: its disk, its indexes, and the store that is opened on them repeatedly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use forms::cpu_pool::CpuPool;
use forms::store::StoreError;
use forms::store::sled::SledStore;
use forms::store::sled::engine::operation::{WriteKind, WriteOperation};
use forms::store::sled::engine::options::{EngineEvent, EngineOptions, IndexHook, OpenError};
use forms::store::sled::engine::tx::{Direction, Tx};
use forms::store::sled::engine::writer::Writer;

use super::fault_injector::FaultInjector;
use super::model_disk::ModelDisk;
use super::model_index::{ModelIndexes, Observer};
use super::random::Random;
use super::real_files::EventLog;
use crate::store::SeededRandom;

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) struct Machine {
    pub(crate) faults: FaultInjector,
    pub(crate) disk: ModelDisk,
    pub(crate) indexes: ModelIndexes,
    pub(crate) event_log: EventLog,
    pub(crate) recount: Arc<IndexHook>,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        let faults = FaultInjector::new(Random::new(seed));
        let disk = ModelDisk::new(faults.clone());
        let indexes = ModelIndexes::new(faults.clone());
        Machine { faults, disk, indexes, event_log: EventLog::default(), recount: Arc::new(|_| Ok(())) }
    }

    /// Small segments, and no background work.
    pub(crate) fn options(&self) -> EngineOptions {
        EngineOptions {
            min_free: 0,
            first_segment: 16 << 10,
            largest_segment: 64 << 10,
            preallocate: false,
            instance: [7; 16],
            recount: Arc::clone(&self.recount),
            on_fatal: Arc::new(|_| ()),
            ..EngineOptions::default()
        }
    }

    pub(crate) fn try_to_open(&self, min_free: u64) -> Result<Writer, OpenError> {
        let options = EngineOptions { min_free, ..self.options() };
        let (disk, indexes) = (Arc::new(self.disk.clone()), Arc::new(self.indexes.clone()));
        Writer::open(disk, indexes, options, self.event_log.report())
    }

    pub(crate) fn open(&self) -> Writer {
        self.try_to_open(0).unwrap()
    }

    pub(crate) fn crash_process(&self) {
        self.disk.crash_process();
        self.indexes.crash_process();
        self.faults.reset();
    }

    pub(crate) fn crash_machine(&self) {
        self.crash_process();
        self.disk.crash_machine();
        self.indexes.crash_machine();
    }

    pub(crate) fn rebuilds(&self) -> usize {
        self.event_log.events().iter().filter(|event| matches!(event, EngineEvent::Rebuilding { .. })).count()
    }

    /// Whether a file on the disk has `text`, those of indexes included.
    pub(crate) fn has_text(&self, text: &[u8]) -> bool {
        self.disk.has_text(text) || self.indexes.has_text(text)
    }

    /// How often the digests of index and journal did not agree.
    pub(crate) fn mismatches(&self) -> usize {
        let is_mismatch = |event: &&EngineEvent| matches!(event, EngineEvent::DigestMismatch { .. });
        self.event_log.events().iter().filter(is_mismatch).count()
    }
}

/// Opens the store of a new machine.
pub(crate) fn open_store(observer: Observer) -> SledStore {
    let mut machine = Machine::new(1);
    machine.indexes.observer = observer;
    let options = EngineOptions { verify_index: false, ..machine.options() };
    let (disk, indexes) = (Arc::new(machine.disk.clone()), Arc::new(machine.indexes.clone()));
    let (pool, random) = (CpuPool::default(), Arc::new(SeededRandom::new(1)));
    SledStore::open_disk(disk, indexes, options, pool, random, machine.event_log.report()).unwrap()
}

/// A machine whose process crashed after it had stored thirty rows.
pub(crate) fn crashed() -> Machine {
    let machine = Machine::new(1);
    let mut writer = machine.open();
    for number in 0..30 {
        put(&mut writer, format!("S{number:02}").as_bytes(), &[number; 300]);
    }
    machine.crash_process();
    machine
}

/// Deletes a row for good.
pub(crate) struct Erase(pub(crate) Vec<u8>);

impl WriteOperation for Erase {
    fn kind(&self) -> WriteKind {
        WriteKind::Normal
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.delete(std::mem::take(&mut self.0));
        tx.count_erasure()
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        outcome.unwrap();
    }
}

/// A write operation that puts or deletes rows.
pub(crate) struct Write {
    pub(crate) kind: WriteKind,
    pub(crate) rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) outcome: Outcome,
}

pub(crate) type Outcome = Arc<Mutex<Option<Result<(), StoreError>>>>;

impl WriteOperation for Write {
    fn kind(&self) -> WriteKind {
        self.kind
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        for (key, body) in self.rows.drain(..) {
            match body {
                Some(body) => tx.put(key, body),
                None => tx.delete(key),
            }
        }
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        *self.outcome.lock().unwrap() = Some(outcome);
    }
}

/// Puts one row in its own group and returns the outcome.
pub(crate) fn put_as(
    writer: &mut Writer,
    kind: WriteKind,
    key: &[u8],
    body: &[u8],
) -> Result<(), StoreError> {
    let outcome = Outcome::default();
    let rows = vec![(key.to_vec(), Some(body.to_vec()))];
    writer.stage(Box::new(Write { kind, rows, outcome: Arc::clone(&outcome) }));
    writer.commit();
    outcome.lock().unwrap().take().unwrap_or(Err(StoreError::Unavailable("no answer".to_owned())))
}

pub(crate) fn put(writer: &mut Writer, key: &[u8], body: &[u8]) {
    put_as(writer, WriteKind::Normal, key, body).unwrap();
}

/// All rows that a reader sees.
pub(crate) fn rows(writer: &Writer) -> Rows {
    writer.reader().scan(.., Direction::Ascending, usize::MAX).unwrap().into_iter().collect()
}

/// Verifies the whole index.
pub(crate) fn verify_all(writer: &mut Writer) {
    while writer.is_verifying() {
        writer.verify(3);
    }
}
