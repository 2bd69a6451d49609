//! Sequences of deaths: whatever was acknowledged is there afterwards, the rest wholly or not at all.

use std::io;
use std::sync::{Arc, Mutex};

use forms::store::StoreError;
use forms::store::sled::engine::operation::{WriteKind, WriteOperation};
use forms::store::sled::engine::options::EngineEvent;
use forms::store::sled::engine::tx::{Direction, Tx};
use forms::store::sled::engine::writer::Writer;

use super::machine::{Machine, Rows, rows};
use super::random::{Random, each_seed};

/// A machine with a store on it, and what must be in that store.
struct World {
    random: Random,
    machine: Machine,
    /// Everything acknowledged.
    known: Rows,
    /// What the store may also hold: a group nobody was answered for.
    possible: Option<Rows>,
}

/// One change of an operation.
#[derive(Clone, Debug)]
enum Deed {
    Put(Vec<u8>, Vec<u8>),
    PutLast(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// An operation that checks what it sees, changes rows, and may then refuse.
struct Errand {
    deeds: Vec<Deed>,
    refuses: bool,
    /// What the rows must be when it runs.
    before: Rows,
    answers: Arc<Mutex<Vec<bool>>>,
}

impl WriteOperation for Errand {
    fn kind(&self) -> WriteKind {
        WriteKind::Normal
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        for deed in self.deeds.clone() {
            match deed {
                Deed::Put(key, body) => tx.put(key, body),
                Deed::PutLast(key, body) => tx.put_last(key, body),
                Deed::Delete(key) => tx.delete(key),
            }
        }
        let mut after = self.before.clone();
        self.deeds.iter().for_each(|deed| deed.happen(&mut after));
        if let Some((key, body)) = after.first_key_value() {
            assert_eq!(tx.get(key)?.as_ref(), Some(body));
        }
        let seen = tx.scan(.., Direction::Descending, 3)?;
        let expected: Vec<_> = after.into_iter().rev().take(3).collect();
        assert_eq!(seen, expected);
        if self.refuses { Err(StoreError::Busy) } else { Ok(()) }
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let Err(StoreError::Panicked(why)) = &outcome {
            panic!("an operation saw something wrong: {why}");
        }
        self.answers.lock().unwrap().push(outcome.is_ok());
    }
}

impl Deed {
    fn happen(&self, rows: &mut Rows) {
        match self.clone() {
            Deed::Put(key, body) | Deed::PutLast(key, body) => drop(rows.insert(key, body)),
            Deed::Delete(key) => drop(rows.remove(&key)),
        }
    }
}

impl World {
    fn new(seed: u64) -> World {
        World { random: Random::new(seed), machine: Machine::new(!seed), known: Rows::new(), possible: None }
    }

    /// Opens the store, however often that is disturbed, and checks that everything is there.
    fn open(&mut self) -> Writer {
        loop {
            self.draw_fate(2);
            match self.machine.try_to_open(0) {
                Ok(writer) if !self.machine.fate.has_struck() => {
                    self.machine.fate.spare();
                    self.check(&writer);
                    return writer;
                }
                Ok(_) => {}
                Err(error) => {
                    assert!(self.machine.fate.has_struck(), "undisturbed, it was not opened: {error:?}")
                }
            }
            self.die();
        }
    }

    /// Lets something go wrong soon, once in `times`.
    fn draw_fate(&mut self, times: usize) {
        if self.random.once_in(times) {
            let calls = 1 + self.random.below(60) as u64;
            match self.random.below(3) {
                0 => self.machine.fate.fail_in(calls, io::ErrorKind::Other),
                1 => self.machine.fate.fail_in(calls, io::ErrorKind::StorageFull),
                _ => self.machine.fate.die_in(calls),
            }
        }
    }

    fn die(&mut self) {
        match self.random.once_in(2) {
            true => self.machine.lose_machine(),
            false => self.machine.lose_process(),
        }
    }

    fn check(&mut self, writer: &Writer) {
        let rows = rows(writer);
        if let Some(possible) = self.possible.take()
            && rows == possible
        {
            self.known = possible;
        }
        assert_same(&rows, &self.known);
        let wrong = self
            .machine
            .heard
            .events()
            .into_iter()
            .find(|event| matches!(event, EngineEvent::DigestMismatch { .. }));
        assert_eq!(wrong, None);
    }

    fn errand(&mut self, before: &Rows, answers: &Arc<Mutex<Vec<bool>>>) -> Errand {
        let deeds = (0..1 + self.random.below(4)).map(|_| self.deed()).collect();
        let refuses = self.random.once_in(6);
        Errand { deeds, refuses, before: before.clone(), answers: Arc::clone(answers) }
    }

    fn deed(&mut self) -> Deed {
        let key = vec![*self.random.pick(b"SFc"), self.random.below(7) as u8];
        let length = match self.random.below(12) {
            0 => 4096 + self.random.below(9000),
            1 => 1000 + self.random.below(3000),
            _ => self.random.below(60),
        };
        let first = self.random.next();
        let body = (0..length).map(|at| (first >> (at % 8)) as u8).collect();
        match self.random.below(5) {
            0 => Deed::Delete(key),
            1 if key[0] == b'c' => Deed::PutLast(key, body),
            _ => Deed::Put(key, body),
        }
    }

    /// Lets a group through and notes what was acknowledged.
    fn group(&mut self, writer: &mut Writer) {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let mut rows = self.known.clone();
        let mut afters = Vec::new();
        for _ in 0..1 + self.random.below(6) {
            let errand = self.errand(&rows, &answers);
            let mut after = rows.clone();
            if !errand.refuses {
                errand.deeds.iter().for_each(|deed| deed.happen(&mut after));
            }
            afters.push(after.clone());
            writer.stage(Box::new(errand));
            if self.machine.fate.has_struck() {
                // The operation may have failed at its first read: what the next would see is not known.
                self.group_under_a_bad_star(writer, rows, after, &answers);
                return;
            }
            rows = after;
        }
        writer.commit();
        if writer.is_stopped() {
            self.possible = Some(rows);
        } else if answers.lock().unwrap().iter().any(|ok| *ok) || afters.last() == Some(&self.known) {
            self.known = rows;
        }
    }

    /// Ends a group in which a call has failed while the last operation was staged.
    fn group_under_a_bad_star(
        &mut self,
        writer: &mut Writer,
        before: Rows,
        after: Rows,
        answers: &Arc<Mutex<Vec<bool>>>,
    ) {
        writer.commit();
        let last = answers.lock().unwrap().last().copied();
        match last {
            Some(happened) => self.known = if happened { after } else { before },
            None => self.possible = Some(before),
        }
    }

    fn live(&mut self) {
        let mut writer = self.open();
        self.draw_fate(2);
        for _ in 0..self.random.below(12) {
            if self.machine.fate.has_struck() || writer.is_stopped() {
                break;
            }
            match self.random.below(10) {
                0 => writer.seal(),
                1 => writer.flush(),
                2 | 3 => writer.verify(3),
                _ => self.group(&mut writer),
            }
        }
        if self.random.once_in(4) && !self.machine.fate.has_struck() {
            self.stop(writer);
        }
        self.die();
    }

    /// A clean stop; after it not even the death of the machine costs a rebuild.
    fn stop(&mut self, mut writer: Writer) {
        let closed = writer.close();
        if self.machine.fate.has_struck() {
            return;
        }
        closed.unwrap();
        drop(writer);
        if self.random.once_in(2) {
            return;
        }
        self.die();
        let rebuilds = self.machine.rebuilds();
        let writer = self.machine.try_to_open(0).unwrap();
        self.check(&writer);
        assert_eq!(self.machine.rebuilds(), rebuilds, "after a clean stop the index is believed");
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
    let mut world = World::new(seed);
    for _ in 0..1 + world.random.below(6) {
        world.live();
    }
    world.machine.fate.be_born();
    let writer = world.machine.try_to_open(0).unwrap();
    world.check(&writer);
}

#[test]
fn no_sequence_of_deaths_loses_or_invents_anything() {
    each_seed("FORMS_SEQUENCES", 2000, sequence);
}
