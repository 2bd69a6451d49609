//! Salvage of damaged journals on the model of a disk.

use forms::store::sled::engine::disk::Disk;
use forms::store::sled::engine::journal_check;
use forms::store::sled::engine::salvage::salvage;

use super::machine::{Machine, Rows, put, rows};

/// The files of a journal with a base and several segments after it, and the rows in it.
fn sound() -> (Machine, Rows) {
    let machine = Machine::new(1);
    let mut writer = machine.open();
    let fill = |writer: &mut _, kind: u8| {
        for number in 0..60u8 {
            put(writer, &[kind, number], &vec![number; 700 + 100 * usize::from(number)]);
        }
    };
    fill(&mut writer, b'S');
    writer.begin_compaction();
    while writer.is_compacting() {
        writer.compact(10);
    }
    fill(&mut writer, b'T');
    let stored = rows(&writer);
    writer.close().unwrap();
    (machine, stored)
}

fn content(machine: &Machine, path: &str) -> Vec<u8> {
    let file = machine.disk.open(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn replace(machine: &Machine, path: &str, bytes: &[u8]) {
    machine.disk.create(path).unwrap().write_at(bytes, 0).unwrap();
}

/// The rows of a store salvaged from the journal of `machine`, and whether it is said to have all.
fn salvaged(machine: &Machine) -> (Rows, bool) {
    let new = Machine::new(2);
    let target = (&new.disk as &dyn Disk, &new.indexes as _);
    let (_, is_complete) = salvage(&machine.disk, target, &new.options(), |_| Ok(())).unwrap();
    let writer = new.open();
    assert_eq!(new.mismatches(), 0);
    (rows(&writer), is_complete)
}

#[test]
fn a_sound_journal_is_salvaged_whole() {
    let (machine, stored) = sound();
    assert_eq!(journal_check::check(&machine.disk).unwrap().damage, []);
    assert_eq!(salvaged(&machine), (stored, true));
}

#[test]
fn each_damage_is_named_and_costs_what_it_hit() {
    let (machine, stored) = sound();
    let mut names = machine.disk.list("journal").unwrap();
    names.sort();
    assert!(names.len() > 4, "{names:?}");
    for name in names.iter().chain(["state".to_owned()].iter()) {
        let path = if name == "state" { name.clone() } else { format!("journal/{name}") };
        let whole = content(&machine, &path);
        let last = whole.iter().rposition(|byte| *byte != 0).unwrap();
        for at in (0..last).step_by(last / 15 + 1).chain([last]) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            replace(&machine, &path, &damaged);
            check(&machine, &path, &stored, at);
        }
        for length in [0, 100, last / 2, last] {
            replace(&machine, &path, &whole[..length]);
            check(&machine, &path, &stored, length);
        }
        machine.disk.remove(&path).unwrap();
        check(&machine, &path, &stored, 0);
        replace(&machine, &path, &whole);
    }
}

/// Checks what is said of a journal, one byte of which is damaged, or all from there on missing.
#[track_caller]
fn check(machine: &Machine, path: &str, stored: &Rows, at: usize) {
    let damage = journal_check::check(&machine.disk).unwrap().damage;
    let (found, is_complete) = salvaged(machine);
    assert!(found.iter().all(|(key, body)| stored.get(key) == Some(body)), "{path} at {at}");
    // The last write may have been more than a seal.
    assert!(!is_complete || found == *stored, "{path} at {at}: {damage:?}");
    // Between the frames nothing is stored.
    let is_named = damage.iter().any(|one| one.file == path && one.offset as usize <= at);
    assert!(is_named || is_complete, "{path} at {at}: {damage:?}");
    assert!(found.len() + 62 >= stored.len(), "{path} at {at}: {} rows", found.len());
}
