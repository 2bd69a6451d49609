//! A machine of the model: its disk, its indexes, and a store that is opened on them again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use forms::store::StoreError;
use forms::store::sled::engine::operation::{WriteKind, WriteOperation};
use forms::store::sled::engine::options::{EngineEvent, EngineOptions, IndexHook, OpenError};
use forms::store::sled::engine::tx::{Direction, Tx};
use forms::store::sled::engine::writer::Writer;

use super::fate::Fate;
use super::model_disk::ModelDisk;
use super::model_index::ModelIndexes;
use super::random::Random;
use super::real::Heard;

/// Rows of a store.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) struct Machine {
    pub(crate) fate: Fate,
    pub(crate) disk: ModelDisk,
    pub(crate) indexes: ModelIndexes,
    pub(crate) heard: Heard,
    pub(crate) recount: Arc<IndexHook>,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        let fate = Fate::new(Random::new(seed));
        let disk = ModelDisk::new(fate.clone());
        let indexes = ModelIndexes::new(fate.clone());
        Machine { fate, disk, indexes, heard: Heard::default(), recount: Arc::new(|_| Ok(())) }
    }

    /// Small segments, and nothing done behind the tests' backs.
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
        self.open_with(EngineOptions { min_free, ..self.options() })
    }

    pub(crate) fn open_with(&self, options: EngineOptions) -> Result<Writer, OpenError> {
        let (disk, indexes) = (Arc::new(self.disk.clone()), Arc::new(self.indexes.clone()));
        Writer::open(disk, indexes, options, self.heard.report())
    }

    pub(crate) fn open(&self) -> Writer {
        self.try_to_open(0).unwrap()
    }

    pub(crate) fn lose_process(&self) {
        self.disk.lose_process();
        self.indexes.lose_process();
        self.fate.be_born();
    }

    pub(crate) fn lose_machine(&self) {
        self.lose_process();
        self.disk.lose_machine();
        self.indexes.lose_machine();
    }

    pub(crate) fn rebuilds(&self) -> usize {
        self.heard.events().iter().filter(|event| matches!(event, EngineEvent::Rebuilding { .. })).count()
    }
}

/// A machine whose process died with thirty rows stored.
pub(crate) fn killed() -> Machine {
    let machine = Machine::new(1);
    let mut writer = machine.open();
    for number in 0..30 {
        put(&mut writer, format!("S{number:02}").as_bytes(), &[number; 300]);
    }
    machine.lose_process();
    machine
}

/// An operation that writes or removes rows.
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

/// Puts one row in a group of its own, and returns the answer.
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

/// Everything a reader sees.
pub(crate) fn rows(writer: &Writer) -> Rows {
    writer.reader().scan(.., Direction::Ascending, usize::MAX).unwrap().into_iter().collect()
}

/// Proves the index to the end.
pub(crate) fn prove(writer: &mut Writer) {
    while writer.is_verifying() {
        writer.verify(3);
    }
}
