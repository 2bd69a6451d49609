//! Random sequences of crashes: every acknowledged change is kept, and any other one is kept whole or not at all.

use std::io;
use std::sync::{Arc, Mutex};

use forms::store::StoreError;
use forms::store::sled::engine::operation::{WriteKind, WriteOperation};
use forms::store::sled::engine::tx::{Direction, Tx};
use forms::store::sled::engine::writer::Writer;

use super::machine::{Machine, Rows, rows};
use super::random::{Random, each_seed};

/// A machine with a store on it, and the rows that the store must have.
struct Simulation {
    random: Random,
    machine: Machine,
    /// All acknowledged rows.
    known: Rows,
    /// What the rows may be if the last group was written although it was not acknowledged.
    possible: Vec<Rows>,
    /// Beginnings of the bodies of rows that were erased, and the number of those erased before the last compaction began.
    erased: Vec<Vec<u8>>,
    compacted: usize,
}

/// One change of an operation.
#[derive(Clone, Debug)]
enum RowChange {
    Put(Vec<u8>, Vec<u8>),
    PutLast(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Erase(Vec<u8>),
}

/// A write that changes rows, checks what it reads, and may then fail.
struct CheckedWrite {
    changes: Vec<RowChange>,
    fails: bool,
    /// The rows expected before the write.
    before: Rows,
    answers: Arc<Mutex<Vec<bool>>>,
}

impl WriteOperation for CheckedWrite {
    fn kind(&self) -> WriteKind {
        WriteKind::Normal
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        for change in self.changes.clone() {
            match change {
                RowChange::Put(key, body) => tx.put(key, body),
                RowChange::PutLast(key, body) => tx.put_last(key, body),
                RowChange::Delete(key) => tx.delete(key),
                RowChange::Erase(key) => {
                    tx.delete(key);
                    tx.count_erasure()?;
                }
            }
        }
        let mut after = self.before.clone();
        self.changes.iter().for_each(|change| change.apply_to(&mut after));
        if let Some((key, body)) = after.first_key_value() {
            assert_eq!(tx.get(key)?.as_ref(), Some(body));
        }
        let mut seen = tx.scan(.., Direction::Descending, 4)?;
        // The engine's own row: the number of erasures.
        seen.retain(|(key, _)| key != b"Me");
        seen.truncate(3);
        let expected: Vec<_> = after.into_iter().rev().take(3).collect();
        assert_eq!(seen, expected);
        if self.fails { Err(StoreError::Busy) } else { Ok(()) }
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let Err(StoreError::Panicked(why)) = &outcome {
            panic!("a write read wrong rows: {why}");
        }
        self.answers.lock().unwrap().push(outcome.is_ok());
    }
}

impl RowChange {
    /// The beginning of the body that is erased, if it is long enough to differ from any other.
    fn erased(&self, rows: &Rows) -> Option<Vec<u8>> {
        let RowChange::Erase(key) = self else { return None };
        rows.get(key)?.get(..8).map(<[u8]>::to_vec)
    }

    fn apply_to(&self, rows: &mut Rows) {
        match self.clone() {
            RowChange::Put(key, body) | RowChange::PutLast(key, body) => drop(rows.insert(key, body)),
            RowChange::Delete(key) | RowChange::Erase(key) => drop(rows.remove(&key)),
        }
    }
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        Simulation {
            random: Random::new(seed),
            machine: Machine::new(!seed),
            known: Rows::new(),
            possible: Vec::new(),
            erased: Vec::new(),
            compacted: 0,
        }
    }

    /// Opens the store, however often injected faults prevent it, and checks its rows.
    fn open(&mut self) -> Writer {
        loop {
            self.arm_fault(2);
            match self.machine.try_to_open(0) {
                Ok(writer) if !self.machine.faults.has_triggered() => {
                    self.machine.faults.disarm();
                    self.check(&writer);
                    return writer;
                }
                Ok(_) => {}
                Err(error) => {
                    assert!(self.machine.faults.has_triggered(), "not opened without a fault: {error:?}")
                }
            }
            self.crash();
        }
    }

    /// Injects a fault or a crash into one of the next calls, once in `times`.
    fn arm_fault(&mut self, times: usize) {
        if self.random.once_in(times) {
            let calls = 1 + self.random.below(60) as u64;
            match self.random.below(3) {
                0 => self.machine.faults.fail_in(calls, io::ErrorKind::Other),
                1 => self.machine.faults.fail_in(calls, io::ErrorKind::StorageFull),
                _ => self.machine.faults.crash_in(calls),
            }
        }
    }

    fn crash(&mut self) {
        match self.random.once_in(2) {
            true => self.machine.crash_machine(),
            false => self.machine.crash_process(),
        }
    }

    fn check(&mut self, writer: &Writer) {
        let rows = rows(writer);
        if std::mem::take(&mut self.possible).contains(&rows) {
            self.known.clone_from(&rows);
        }
        assert_same(&rows, &self.known);
        assert_eq!(self.machine.mismatches(), 0);
    }

    fn random_write(&mut self, before: &Rows, answers: &Arc<Mutex<Vec<bool>>>) -> CheckedWrite {
        let changes = (0..1 + self.random.below(4)).map(|_| self.random_change()).collect();
        let fails = self.random.once_in(6);
        CheckedWrite { changes, fails, before: before.clone(), answers: Arc::clone(answers) }
    }

    fn random_change(&mut self) -> RowChange {
        let key = vec![*self.random.pick(b"SFc"), self.random.below(7) as u8];
        let length = match self.random.below(12) {
            0 => 4096 + self.random.below(9000),
            1 => 1000 + self.random.below(3000),
            _ => self.random.below(60),
        };
        let text = self.random.next().to_be_bytes();
        let body = (0..length).map(|at| text[at % 8]).collect();
        match self.random.below(6) {
            0 => RowChange::Delete(key),
            5 => RowChange::Erase(key),
            1 if key[0] == b'c' => RowChange::PutLast(key, body),
            _ => RowChange::Put(key, body),
        }
    }

    /// Commits a group of writes and records what was acknowledged.
    fn group(&mut self, writer: &mut Writer) {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let mut rows = self.known.clone();
        let (mut afters, mut erased) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.below(6) {
            let write = self.random_write(&rows, &answers);
            let mut after = rows.clone();
            if !write.fails {
                write.changes.iter().for_each(|change| change.apply_to(&mut after));
                erased.extend(write.changes.iter().filter_map(|change| change.erased(&rows)));
            }
            afters.push(after.clone());
            writer.stage(Box::new(write));
            if self.machine.faults.has_triggered() {
                // The write may have failed at its first read, so what the next one would read is unknown.
                self.finish_faulty_group(writer, rows, after, &answers);
                return;
            }
            rows = after;
        }
        writer.commit();
        if writer.is_stopped() {
            self.possible = vec![rows];
        } else if answers.lock().unwrap().iter().any(|ok| *ok) || afters.last() == Some(&self.known) {
            self.known = rows;
            self.erased.append(&mut erased);
        }
    }

    /// Commits a group in which a call failed while the last write was staged.
    fn finish_faulty_group(
        &mut self,
        writer: &mut Writer,
        before: Rows,
        after: Rows,
        answers: &Arc<Mutex<Vec<bool>>>,
    ) {
        writer.commit();
        let last = answers.lock().unwrap().last().copied();
        match last {
            Some(is_applied) => self.known = if is_applied { after } else { before },
            // The call that failed may be one whose result the write does not need, such as the free space.
            None => self.possible = vec![before, after],
        }
    }

    fn run_process(&mut self) {
        let mut writer = self.open();
        self.arm_fault(2);
        for _ in 0..self.random.below(12) {
            if self.machine.faults.has_triggered() || writer.is_stopped() {
                break;
            }
            match self.random.below(10) {
                0 => writer.seal(),
                1 => writer.flush(),
                2..5 if writer.is_compacting() => self.compact(&mut writer),
                2 | 3 => writer.verify(3),
                4 => self.begin_compaction(&mut writer),
                _ => self.group(&mut writer),
            }
        }
        if self.random.once_in(4) && !self.machine.faults.has_triggered() {
            self.stop(writer);
        }
        self.crash();
    }

    fn begin_compaction(&mut self, writer: &mut Writer) {
        self.compacted = self.erased.len();
        writer.begin_compaction();
        if writer.is_compacting() && self.random.once_in(3) {
            self.arm_fault(1);
        }
    }

    /// Goes on with a compaction. Once it is complete, no file has what was erased before it.
    fn compact(&mut self, writer: &mut Writer) {
        writer.compact(*self.random.pick(&[3, 100]));
        if !writer.is_compacting() && !self.machine.faults.has_triggered() {
            for text in &self.erased[..self.compacted] {
                assert!(!self.machine.has_text(text), "{} remains", text.escape_ascii());
            }
        }
    }

    /// Closes the store; after that not even a crash of the machine causes a rebuild.
    fn stop(&mut self, mut writer: Writer) {
        let closed = writer.close();
        if self.machine.faults.has_triggered() {
            return;
        }
        closed.unwrap();
        drop(writer);
        if self.random.once_in(2) {
            return;
        }
        self.crash();
        let rebuilds = self.machine.rebuilds();
        let writer = self.machine.try_to_open(0).unwrap();
        self.check(&writer);
        assert_eq!(self.machine.rebuilds(), rebuilds, "the index was not trusted after a clean stop");
    }
}

fn assert_same(rows: &Rows, known: &Rows) {
    let names = |rows: &Rows| -> Vec<_> {
        rows.iter()
            .map(|(key, body)| (key.escape_ascii().to_string(), body.len(), crc32c::crc32c(body)))
            .collect()
    };
    assert_eq!(names(rows), names(known));
}

fn sequence(seed: u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..1 + simulation.random.below(6) {
        simulation.run_process();
    }
    simulation.machine.faults.reset();
    let mut writer = simulation.machine.try_to_open(0).unwrap();
    simulation.check(&writer);
    simulation.begin_compaction(&mut writer);
    simulation.machine.faults.disarm();
    while writer.is_compacting() {
        simulation.compact(&mut writer);
    }
    simulation.crash();
    drop(writer);
    let writer = simulation.machine.try_to_open(0).unwrap();
    simulation.check(&writer);
}

#[test]
fn no_sequence_of_crashes_loses_or_invents_rows() {
    each_seed("FORMS_SEQUENCES", 300, sequence);
}
