//! Compaction of the journal: what was overwritten and deleted leaves the disk, and everything else stays.

use std::io::ErrorKind;
use std::sync::Arc;

use forms::store::sled::engine::disk::Disk;
use forms::store::sled::engine::index::IndexProvider;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};
use forms::store::sled::engine::writer::Writer;

use super::fault_injector::FaultInjector;
use super::machine::{Erase, Machine, put, rows, verify_all};

/// Compacts the journal, a few rows at a time.
fn compact(writer: &mut Writer) {
    writer.begin_compaction();
    assert!(writer.is_compacting());
    while writer.is_compacting() {
        writer.compact(3);
    }
}

fn journal(machine: &Machine) -> Vec<String> {
    let mut names = machine.disk.list("journal").unwrap();
    names.sort();
    names
}

const ERASED: &[u8] = b"forget-me-0451";

/// A store with a row that was erased.
fn with_erased(machine: &Machine) -> Writer {
    let mut writer = machine.open();
    for number in 0..4u8 {
        put(&mut writer, &[b'S', number], &[number; 90]);
    }
    put(&mut writer, b"S5", ERASED);
    writer.stage(Box::new(Erase(b"S5".to_vec())));
    writer.commit();
    assert!(machine.has_text(ERASED) && writer.has_erased());
    writer
}

/// Compacts the journal until that has ended in any way.
fn try_to_compact(writer: &mut Writer) {
    writer.begin_compaction();
    while writer.is_compacting() {
        writer.compact(3);
    }
}

/// A store whose rows were each written several times.
fn rewritten(machine: &Machine) -> Writer {
    let mut writer = machine.open();
    for turn in 0..5u8 {
        for number in 0..20u8 {
            put(&mut writer, &[b'S', number], &[turn; 900]);
        }
    }
    writer
}

#[test]
fn the_base_stands_for_the_segments_before_it() {
    let machine = Machine::new(1);
    let mut writer = rewritten(&machine);
    let before = rows(&writer);
    let segments = journal(&machine);
    assert!(segments.len() > 2, "{segments:?}");
    compact(&mut writer);
    let names = journal(&machine);
    let [base, segment] = &names[..] else { panic!("{names:?}") };
    assert_eq!(base.trim_end_matches(".base"), segment.trim_end_matches(".log"));
    let compacted = |event: &EngineEvent| matches!(event, EngineEvent::Compacted { before, after } if *after < before / 10);
    assert!(machine.event_log.events().iter().any(compacted), "{:?}", machine.event_log.events());
    // Without new frames there is nothing to compact.
    writer.begin_compaction();
    assert!(!writer.is_compacting());

    machine.crash_machine();
    let mut writer = machine.open();
    assert_eq!(rows(&writer), before);
    assert!(machine.rebuilds() > 0);
    put(&mut writer, b"Sx", b"later");
    verify_all(&mut writer);
    writer.close().unwrap();
    drop(writer);
    let rebuilds = machine.rebuilds();
    let mut writer = machine.open();
    assert_eq!((rows(&writer).len(), machine.rebuilds(), machine.mismatches()), (21, rebuilds, 0));
    compact(&mut writer);
    assert_eq!(journal(&machine).len(), 2);
    writer.close().unwrap();
    drop(writer);
    machine.crash_machine();
    assert_eq!(rows(&machine.open()).len(), 21);
}

#[test]
fn changes_during_a_compaction_are_kept() {
    let machine = Machine::new(1);
    let mut writer = rewritten(&machine);
    writer.begin_compaction();
    writer.compact(6);
    // Before and after the rows that were copied, and one that is new.
    for (key, body) in [([b'S', 0], 7), ([b'S', 19], 8), ([b'T', 0], 9)] {
        put(&mut writer, &key, &[body; 10]);
    }
    while writer.is_compacting() {
        writer.compact(3);
    }
    let expected = rows(&writer);
    machine.crash_machine();
    assert_eq!(rows(&machine.open()), expected);
    assert_eq!(machine.mismatches(), 0);
}

#[test]
fn an_interrupted_compaction_leaves_the_old_journal() {
    let machine = Machine::new(1);
    let mut writer = rewritten(&machine);
    let expected = rows(&writer);
    writer.begin_compaction();
    writer.compact(6);
    machine.crash_process();
    assert!(journal(&machine).iter().any(|name| name == "base.tmp"));
    let writer = machine.open();
    assert_eq!(rows(&writer), expected);
    assert!(journal(&machine).iter().all(|name| name.ends_with(".log")));
}

#[test]
fn a_damaged_base_is_reported_and_nothing_is_changed() {
    let machine = Machine::new(1);
    let mut writer = rewritten(&machine);
    compact(&mut writer);
    machine.crash_machine();
    let names = journal(&machine);
    let base = names.iter().find(|name| name.ends_with(".base")).unwrap();
    let path = format!("journal/{base}");
    let file = machine.disk.open(&path).unwrap();
    for at in [3, 600] {
        let mut byte = [0];
        file.read_at(&mut byte, at).unwrap();
        file.write_at(&[byte[0] ^ 4], at).unwrap();
        let error = machine.try_to_open(0).err().unwrap().to_string();
        assert!(error.contains(&format!("the journal is damaged: {path} at byte ")), "{error}");
        file.write_at(&byte, at).unwrap();
        assert_eq!(journal(&machine), names);
    }
    assert_eq!(rows(&machine.open()).len(), 20);
}

#[test]
fn a_compaction_without_space_frees_what_it_has_taken() {
    let machine = Machine::new(1);
    drop(rewritten(&machine));
    machine.crash_process();
    let mut writer = machine.try_to_open(1000).unwrap();
    writer.begin_compaction();
    assert!(journal(&machine).iter().any(|name| name == "base.tmp"));
    machine.disk.set_free(999);
    writer.check_free_space();
    writer.compact(3);
    assert!(!writer.is_compacting() && journal(&machine).iter().all(|name| name.ends_with(".log")));
    machine.disk.set_free(u64::MAX);
    writer.check_free_space();
    compact(&mut writer);
    assert_eq!(rows(&writer).len(), 20);
}

#[test]
fn a_compaction_is_due_when_the_journal_has_outgrown_its_base() {
    let machine = Machine::new(1);
    let options = EngineOptions { compact_after: Some(32 << 10), ..machine.options() };
    let (disk, indexes) = (Arc::new(machine.disk.clone()), Arc::new(machine.indexes.clone()));
    let mut writer = Writer::open(disk, indexes, options, machine.event_log.report()).unwrap();
    let write = |writer: &mut Writer, bytes: u8| {
        for number in 0..bytes {
            put(writer, &[b'S', number], &[number; 1000]);
        }
    };
    write(&mut writer, 10);
    assert!(!writer.is_compaction_due());
    write(&mut writer, 120);
    assert!(writer.is_compaction_due());
    compact(&mut writer);
    assert!(!writer.is_compaction_due());
    // The base has 120 rows, and as much again is not written yet.
    write(&mut writer, 40);
    assert!(!writer.is_compaction_due());
    write(&mut writer, 120);
    write(&mut writer, 120);
    assert!(writer.is_compaction_due());
}

#[test]
fn what_was_erased_is_in_no_file_after_a_compaction() {
    let machine = Machine::new(1);
    let mut writer = with_erased(&machine);
    writer.begin_compaction();
    writer.compact(2);
    // Before and after the rows that were copied.
    for (key, body) in [([b'S', 0], 7), ([b'S', 3], 8), ([b'T', 0], 9)] {
        put(&mut writer, &key, &[body; 9000]);
    }
    let expected = rows(&writer);
    while writer.is_compacting() {
        writer.compact(3);
    }
    assert!(!machine.has_text(ERASED));
    verify_all(&mut writer);
    assert_eq!(rows(&writer), expected);
    // Another one without an erasure needs no new index.
    put(&mut writer, b"Sx", b"more");
    writer.begin_compaction();
    assert_eq!(machine.indexes.size("index.new"), 0);
    while writer.is_compacting() {
        writer.compact(3);
    }
    machine.crash_process();
    assert_eq!(rows(&machine.open()).len(), expected.len() + 1);
    assert_eq!((machine.rebuilds(), machine.mismatches()), (0, 0));
}

#[test]
fn a_fault_in_any_call_of_a_renewal_loses_nothing_and_the_next_one_completes_it() {
    let faults: [fn(&FaultInjector, u64); 3] = [
        |faults, call| faults.crash_in(call),
        |faults, call| faults.fail_in(call, ErrorKind::Other),
        |faults, call| faults.fail_in(call, ErrorKind::StorageFull),
    ];
    for inject in faults {
        for call in 1.. {
            let machine = Machine::new(call);
            let mut writer = with_erased(&machine);
            let expected = rows(&writer);
            inject(&machine.faults, call);
            try_to_compact(&mut writer);
            let is_done = !machine.faults.has_triggered();
            if machine.faults.is_crashed() || writer.is_stopped() {
                if call % 2 == 0 {
                    machine.crash_process()
                } else {
                    machine.crash_machine()
                }
                writer = machine.open();
            }
            machine.faults.reset();
            writer.check_free_space();
            assert_eq!((rows(&writer), machine.mismatches()), (expected, 0), "call {call}");
            try_to_compact(&mut writer);
            verify_all(&mut writer);
            assert!(!machine.has_text(ERASED), "call {call}: {:?}", machine.event_log.events());
            if is_done {
                assert!(call > 40 && machine.rebuilds() == 0);
                break;
            }
        }
    }
}

#[test]
fn without_space_for_two_indexes_the_next_compaction_or_start_renews_it() {
    let machine = Machine::new(1);
    let mut writer = with_erased(&machine);
    // The model's index has one byte.
    machine.disk.set_free(1);
    compact(&mut writer);
    let is_reported = |event: &EngineEvent| matches!(event, EngineEvent::RenewalFailed { .. });
    assert!(machine.event_log.events().iter().any(is_reported));
    assert!(!machine.disk.has_text(ERASED) && machine.indexes.has_text(ERASED) && writer.has_erased());
    machine.disk.set_free(2);
    compact(&mut writer);
    assert!(!machine.has_text(ERASED) && !writer.has_erased());

    let machine = Machine::new(2);
    let mut writer = with_erased(&machine);
    machine.disk.set_free(1);
    compact(&mut writer);
    writer.close().unwrap();
    drop(writer);
    machine.disk.set_free(u64::MAX);
    assert_eq!(rows(&machine.open()).len(), 4);
    assert!(!machine.has_text(ERASED));
}
