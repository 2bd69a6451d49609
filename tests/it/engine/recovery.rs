//! Single faults: a crash, a missing or damaged file, a full disk, a failed sync, and how the store recovers.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use forms::store::StoreError;
use forms::store::sled::engine::Engine;
use forms::store::sled::engine::disk::Disk;
use forms::store::sled::engine::operation::WriteKind;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions, OpenError};
use tokio::runtime::Builder;

use super::machine::{Machine, crashed, put, put_as, rows, verify_all};

/// A machine with a store of thirty rows that was closed cleanly.
fn closed() -> Machine {
    let machine = crashed();
    machine.open().close().unwrap();
    machine.crash_process();
    machine
}

#[test]
fn after_a_crash_of_the_process_the_index_is_trusted_and_catches_up() {
    let machine = crashed();
    assert_eq!(rows(&machine.open()).len(), 30);
    assert_eq!(machine.rebuilds(), 0);
}

#[test]
fn after_a_crash_of_the_machine_the_index_is_rebuilt() {
    let machine = crashed();
    machine.crash_machine();
    let mut writer = machine.open();
    assert_eq!(rows(&writer).len(), 30);
    assert_eq!(machine.rebuilds(), 1);
    verify_all(&mut writer);
    assert_eq!(machine.event_log.events().last(), Some(&EngineEvent::Verified));
}

#[test]
fn a_copy_of_an_index_is_not_trusted() {
    let machine = closed();
    machine.indexes.replace_by_copy();
    assert_eq!(rows(&machine.open()).len(), 30);
    assert_eq!(machine.rebuilds(), 1);
}

#[test]
fn an_index_with_the_digest_of_another_store_is_not_trusted() {
    let machine = closed();
    let other = Machine::new(2);
    let mut writer = other.open();
    put(&mut writer, b"Sx", b"other");
    let mut record = Vec::new();
    other.indexes.tamper(|index| record = index[&b"Ma"[..]].clone());
    machine.indexes.tamper(|index| drop(index.insert(b"Ma".to_vec(), record)));
    assert_eq!(rows(&machine.open()).len(), 30);
    assert_eq!(machine.rebuilds(), 1);
}

#[test]
fn verification_finds_and_restores_a_row_that_the_index_lacks() {
    let machine = closed();
    machine.indexes.tamper(|index| drop(index.remove(&b"S07"[..])));
    let mut writer = machine.open();
    assert_eq!(rows(&writer).len(), 29);
    // Changes on both sides of the cursor do not disturb verification.
    writer.verify(10);
    put(&mut writer, b"S01", b"changed before the cursor");
    put(&mut writer, b"S25", b"changed behind the cursor");
    verify_all(&mut writer);
    assert_eq!(rows(&writer).len(), 30);
    assert_eq!(machine.rebuilds(), 1);
}

#[test]
fn verification_succeeds_while_rows_change() {
    let machine = closed();
    let mut writer = machine.open();
    let mut number = 0;
    while writer.is_verifying() {
        writer.verify(2);
        number += 1;
        put(&mut writer, format!("S{:02}", number * 7 % 40).as_bytes(), &vec![1; 100 * number]);
    }
    assert_eq!(machine.rebuilds(), 0);
    assert!(machine.event_log.events().contains(&EngineEvent::Verified));
}

#[test]
fn an_unreadable_row_is_an_error_until_it_is_restored_and_never_missing() {
    for is_of_another_key in [false, true] {
        let machine = closed();
        let mut writer = machine.open();
        verify_all(&mut writer);
        machine.indexes.tamper(|index| {
            let mut cell = index[&b"S07"[..]].clone();
            cell[3] ^= 1;
            let cell = if is_of_another_key { index[&b"S08"[..]].clone() } else { cell };
            index.insert(b"S07".to_vec(), cell);
        });
        assert!(matches!(writer.reader().get(b"S07"), Err(StoreError::Damaged(_))));
        let refused = put_as(&mut writer, WriteKind::Normal, b"S07", b"new");
        assert!(matches!(refused, Err(StoreError::Damaged(_))));
        verify_all(&mut writer);
        assert_eq!(writer.reader().get(b"S07").unwrap(), Some(vec![7; 300]));
        assert_eq!(machine.rebuilds(), 1);
    }
}

#[test]
fn a_large_row_is_stored_in_pieces_and_a_missing_piece_is_damage() {
    let machine = Machine::new(3);
    let mut writer = machine.open();
    put(&mut writer, b"Slarge", &[5; 20_000]);
    machine.indexes.tamper(|index| {
        assert!(index.values().all(|cell| cell.len() <= 4096 + 5), "a cell is too large for the index");
        index.retain(|key, _| key[0] != b'P' || key.last() != Some(&2));
    });
    assert!(matches!(writer.reader().get(b"Slarge"), Err(StoreError::Damaged(_))));
    verify_all(&mut writer);
    assert_eq!(writer.reader().get(b"Slarge").unwrap(), Some(vec![5; 20_000]));
    put(&mut writer, b"Slarge", b"small");
    machine
        .indexes
        .tamper(|index| assert!(index.keys().all(|key| key[0] != b'P'), "a piece was left behind"));
}

#[test]
fn a_full_disk_refuses_writes_until_space_is_free() {
    let machine = closed();
    let mut writer = machine.try_to_open(1000).unwrap();
    machine.disk.set_free(999);
    assert!(matches!(put_as(&mut writer, WriteKind::Normal, b"Sx", b"x"), Err(StoreError::Full)));
    put_as(&mut writer, WriteKind::Reclaim, b"Sy", b"y").unwrap();
    machine.disk.set_free(499);
    assert!(matches!(put_as(&mut writer, WriteKind::Reclaim, b"Sz", b"z"), Err(StoreError::Full)));
    assert_eq!(writer.reader().get(b"S07").unwrap(), Some(vec![7; 300]));
    machine.disk.set_free(1000);
    put(&mut writer, b"Sx", b"x");
    assert_eq!(rows(&writer).len(), 32);
    let reported: Vec<_> = machine.event_log.events().iter().map(ToString::to_string).collect();
    assert_eq!(reported, ["less disk space is free than --min-free: writes are refused until there is more"]);
}

#[test]
fn a_failed_sync_acknowledges_nothing_and_stops_the_store() {
    let machine = closed();
    let mut writer = machine.open();
    // The calls of a group of one row: free space, old row, write, sync.
    machine.faults.fail_in(4, io::ErrorKind::Other);
    let answer = put_as(&mut writer, WriteKind::Normal, b"Sx", b"x");
    assert!(matches!(answer, Err(StoreError::Unavailable(why)) if why == "no answer"));
    assert!(writer.is_stopped());
    assert!(matches!(put_as(&mut writer, WriteKind::Normal, b"Sy", b"y"), Err(StoreError::Unavailable(_))));
    assert!(writer.close().is_err());
}

#[test]
fn a_failed_sync_of_the_index_stops_the_store_and_the_index_is_not_trusted() {
    let machine = crashed();
    machine.indexes.fail_to_sync();
    let (sender, reasons) = channel();
    let faults = machine.faults.clone();
    let fatal = move |why: &str| {
        // The process ends here.
        faults.crash_in(1);
        sender.send(why.to_owned()).unwrap();
    };
    let options = EngineOptions { on_fatal: Arc::new(fatal), ..machine.options() };
    let (disk, indexes) = (Arc::new(machine.disk.clone()), Arc::new(machine.indexes.clone()));
    let engine = Engine::open(disk, indexes, options, machine.event_log.report()).unwrap();
    let written = Builder::new_current_thread().build().unwrap().block_on(engine.write(|tx| {
        tx.put(b"Sx".to_vec(), b"x".to_vec());
        Ok(())
    }));
    written.unwrap();
    assert_eq!(reasons.recv().unwrap(), "cannot sync the index: the disk has failed");
    drop(engine);
    machine.crash_process();
    assert_eq!(rows(&machine.open()).len(), 31);
    assert_eq!(machine.rebuilds(), 1);
}

#[test]
fn changes_are_applied_pieces_first_then_by_key_and_counters_last() {
    let machine = Machine::new(1);
    let (disk, indexes) = (Arc::new(machine.disk.clone()), Arc::new(machine.indexes.clone()));
    let engine = Engine::open(disk, indexes, machine.options(), machine.event_log.report()).unwrap();
    let write = engine.write(|tx| {
        tx.put_last(b"C".to_vec(), Vec::new());
        b"SFT".iter().for_each(|kind| tx.put(vec![*kind], Vec::new()));
        tx.put(b"Q".to_vec(), vec![0; 3 * 4096]);
        Ok(())
    });
    Builder::new_current_thread().enable_time().build().unwrap().block_on(write).unwrap();
    let applied: Vec<_> = machine.indexes.unflushed_keys().iter().map(|key| key[0]).collect();
    // The engine's own record of the write is last.
    assert_eq!(applied, b"PPPFQSTCM");
    engine.close().unwrap();
}

#[test]
fn a_segment_begun_after_a_full_disk_is_recorded_in_the_state() {
    // The first two calls check the free space and read the old row.
    for call in 3.. {
        let machine = crashed();
        let mut writer = machine.open();
        let segments =
            || machine.disk.list("journal").unwrap().iter().filter(|name| name.ends_with(".log")).count();
        let before = segments();
        machine.faults.fail_in(call, io::ErrorKind::StorageFull);
        // Too large for the rest of any existing segment.
        let answer = put_as(&mut writer, WriteKind::Normal, b"Slarge", &[1; 60_000]);
        if !matches!(answer, Err(StoreError::Full)) {
            // From the write of the frame on, a full disk is a failed write.
            assert!(call > 13, "call {call} must be one of those that begin a segment");
            break;
        }
        put(&mut writer, b"Slarge", &[1; 60_000]);
        assert_eq!(segments(), before + 1);
        machine.crash_process();
        machine.disk.remove(&format!("journal/{:08}.log", before + 1)).unwrap();
        let Err(OpenError::Damaged(damage)) = machine.try_to_open(0) else {
            panic!("call {call}: the missing segment was not noticed")
        };
        assert_eq!(damage.what, "the file is missing");
    }
}

#[test]
fn a_partly_created_segment_is_completed_before_the_next_write() {
    for case in 0..13 * 8 * 3 {
        let (call, seed, then) = (3 + case / 24, case / 3 % 8, case % 3);
        let machine = Machine::new(seed);
        let mut writer = machine.open();
        put(&mut writer, b"Sa", b"one");
        if then == 0 {
            // No unsealed writes are left.
            writer.seal();
        }
        machine.faults.fail_in(call, io::ErrorKind::StorageFull);
        if !matches!(put_as(&mut writer, WriteKind::Normal, b"Sb", &[1; 60_000]), Err(StoreError::Full)) {
            continue;
        }
        if then == 2 {
            put(&mut writer, b"Sc", b"small");
        }
        writer.close().unwrap();
        drop(writer);
        drop(machine.open());
        machine.crash_machine();
        let opened = machine
            .try_to_open(0)
            .unwrap_or_else(|error| panic!("call {call}, seed {seed}, then {then}: {error}"));
        assert_eq!(opened.reader().get(b"Sa").unwrap(), Some(b"one".to_vec()));
    }
}

#[test]
fn the_error_of_a_missing_segment_names_its_file() {
    let machine = closed();
    machine.disk.remove("journal/00000001.log").unwrap();
    let Err(OpenError::Damaged(damage)) = machine.try_to_open(0) else { panic!("the store was opened") };
    assert_eq!((damage.file.as_str(), damage.what.as_str()), ("journal/00000001.log", "the file is missing"));
}

#[test]
fn without_state_an_index_that_is_ahead_of_the_journal_reveals_a_missing_segment() {
    let machine = closed();
    let mut writer = machine.open();
    for number in 0..40 {
        put(&mut writer, format!("T{number:02}").as_bytes(), &[number; 900]);
    }
    writer.close().unwrap();
    let segments = machine.disk.list("journal").unwrap();
    let newest = format!("journal/{}", segments.iter().max().unwrap());
    assert!(segments.len() > 1);
    machine.disk.remove("state").unwrap();
    machine.disk.remove(&newest).unwrap();
    for _ in 0..2 {
        let error = machine.try_to_open(0).err().unwrap();
        assert!(matches!(error, OpenError::Damaged(_)), "{error}");
        assert!(error.to_string().contains("the changes in between are missing"), "{error}");
    }
    assert_eq!(machine.rebuilds(), 0);
}

#[test]
fn a_missing_state_file_causes_a_rebuild_that_gives_it_as_the_reason() {
    let machine = closed();
    machine.disk.remove("state").unwrap();
    assert_eq!(rows(&machine.open()).len(), 30);
    let why = "`state` is missing or damaged".to_owned();
    assert!(
        machine.event_log.events().contains(&EngineEvent::Rebuilding { why }),
        "{:?}",
        machine.event_log.events()
    );
}

#[test]
fn damage_in_the_middle_of_the_journal_is_distinguished_from_a_torn_write() {
    let machine = crashed();
    let file = machine.disk.open("journal/00000001.log").unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 8192 + 100).unwrap();
    file.write_at(&[byte[0] ^ 1], 8192 + 100).unwrap();
    file.sync().unwrap();
    machine.crash_machine();
    let error = machine.try_to_open(0).err().unwrap();
    let OpenError::Damaged(damage) = &error else { panic!("not refused as damaged: {error}") };
    assert_eq!((damage.position, damage.readable_before, damage.readable_after), (8192, 0, Some(2)));
    assert!(error.to_string().contains("journal/00000001.log at byte 8192"), "{error}");
}

#[test]
fn the_remains_of_a_torn_write_are_saved_to_a_file() {
    let machine = closed();
    let mut writer = machine.open();
    machine.faults.crash_in(3);
    let answer = put_as(&mut writer, WriteKind::Normal, b"Sx", &[9; 4000]);
    assert!(answer.is_err());
    let file = machine.disk.clone();
    machine.crash_process();
    let writer = machine.open();
    assert_eq!(rows(&writer).len(), 30);
    let saved = machine.event_log.events().into_iter().find_map(|event| match event {
        EngineEvent::TornWriteSaved { file, bytes } => Some((file, bytes)),
        _ => None,
    });
    let (name, bytes) = saved.expect("the seed left no sectors of the write");
    assert_eq!(file.open(&name).unwrap().size().unwrap(), bytes);
}
