//! Decisions made on an index with a hole in it: once it is rebuilt, what was counted is counted again.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use forms::app::bootstrap;
use forms::cpu_pool::CpuPool;
use forms::secret::KeyText;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Change, IndexProvider, SledIndexes};
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};
use forms::store::sled::engine::tx::Direction;
use forms::store::{Maintenance, Submissions};

use super::machine::{Machine, put, rows};
use super::real::{Heard, options};
use crate::store::{Scrambled, at, published, submit, workspace};

/// A machine whose journal says other totals than its frames come to, and which counts the rows under `S`.
fn miscounted() -> Machine {
    let mut machine = Machine::new(5);
    machine.recount = Arc::new(|tx| {
        let count = tx.scan(b"S".to_vec()..b"T".to_vec(), Direction::Ascending, 100)?.len();
        tx.put_last(b"C".to_vec(), vec![count as u8]);
        Ok(())
    });
    let mut writer = machine.open();
    (0..5_u8).for_each(|number| put(&mut writer, &[b'S', number], b"one"));
    machine.indexes.meddle(|index| drop(index.remove(&b"S\x03"[..])));
    put(&mut writer, b"S\x03", b"taken for a new row");
    put(&mut writer, b"C", &[6]);
    machine.lose_machine();
    machine
}

fn differed(machine: &Machine) -> usize {
    machine.heard.events().iter().filter(|event| matches!(event, EngineEvent::DigestMismatch { .. })).count()
}

#[test]
fn what_was_counted_wrong_is_right_with_the_first_reader_and_for_good() {
    let machine = miscounted();
    let writer = machine.open();
    assert_eq!(writer.reader().get(b"C").unwrap(), Some(vec![5]));
    assert_eq!(differed(&machine), 1);
    drop(writer);
    machine.lose_machine();
    let writer = machine.open();
    assert_eq!(rows(&writer).len(), 6);
    assert_eq!(writer.reader().get(b"C").unwrap(), Some(vec![5]));
    assert_eq!((machine.rebuilds(), differed(&machine)), (2, 1));
}

#[test]
fn no_death_while_counting_leaves_a_wrong_count() {
    let mut deaths = 0;
    loop {
        let machine = miscounted();
        machine.fate.die_in(deaths + 1);
        let opened = machine.try_to_open(0);
        if opened.is_ok() && !machine.fate.has_struck() {
            break;
        }
        drop(opened);
        deaths += 1;
        match deaths % 2 {
            0 => machine.lose_process(),
            _ => machine.lose_machine(),
        }
        assert_eq!(machine.open().reader().get(b"C").unwrap(), Some(vec![5]), "death {deaths}");
    }
    assert!(deaths > 20, "{deaths} deaths reach all of an opening");
}

#[test]
fn a_counter_found_wrong_while_serving_is_counted_again() {
    let machine = miscounted();
    let mut writer = machine.open();
    machine.indexes.meddle(|index| drop(index.remove(&b"S\x02"[..])));
    put(&mut writer, b"S\x02", b"taken for a new row");
    put(&mut writer, b"C", &[6]);
    assert_eq!(differed(&machine), 1);
    while writer.is_verifying() {
        writer.verify(3);
        put(&mut writer, b"T", b"somebody writes meanwhile");
    }
    assert_eq!(writer.reader().get(b"C").unwrap(), Some(vec![5]));
}

fn open(path: &Path, heard: &Heard) -> SledStore {
    let options = EngineOptions { verify_index: false, ..options() };
    SledStore::open(path, options, CpuPool::default(), Arc::new(Scrambled::new(1)), heard.report()).unwrap()
}

#[tokio::test]
async fn the_number_of_submissions_is_counted_again() {
    let folder = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let store = open(folder.path(), &heard);
    let random = Scrambled::new(2);
    bootstrap(&store, &KeyText::draw(&random), &random, at(0)).await.unwrap();
    let form = published(&store, 1).await;
    for number in 0..3 {
        submit(&store, form, "{}", number).await;
    }
    store.close().await.unwrap();
    drop(store);
    lose_counters(folder.path(), &[b"C".as_slice(), &form.to_bytes()].concat());

    let store = open(folder.path(), &heard);
    submit(&store, form, "{}", 10).await;
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 1, "the hole is not seen");
    store.close().await.unwrap();
    drop(store);
    fs::remove_dir_all(folder.path().join("index")).unwrap();

    let store = open(folder.path(), &heard);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 4);
    submit(&store, form, "{}", 11).await;
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 5);
}

fn lose_counters(path: &Path, key: &[u8]) {
    let indexes = SledIndexes::new(path, 4 << 20).unwrap();
    let index = indexes.open("index").unwrap();
    assert!(index.get(key).unwrap().is_some());
    index.apply(&mut [Change { key, cell: None }].into_iter()).unwrap();
    indexes.close("index", index).unwrap();
}
