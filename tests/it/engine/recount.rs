//! Counters computed from an index with missing rows: they are counted again once the index is rebuilt.

use std::fs;
use std::sync::Arc;

use forms::app::bootstrap;
use forms::secret::KeyText;
use forms::store::sled::engine::tx::Direction;

use super::machine::{Machine, put, rows};
use super::real_store::{StoreFolder, change_row, close};
use crate::store::deliveries::{assert_counters, claim, finish, form_with, permanent, submit_with, totals};
use crate::store::{SeededRandom, at, count};

/// A machine that counts the rows under `S`, and whose journal has wrong digests because a row was missing.
fn miscounted() -> Machine {
    let mut machine = Machine::new(5);
    machine.recount = Arc::new(|tx| {
        let count = tx.scan(b"S".to_vec()..b"T".to_vec(), Direction::Ascending, 100)?.len();
        tx.put_last(b"C".to_vec(), vec![count as u8]);
        Ok(())
    });
    let mut writer = machine.open();
    (0..5_u8).for_each(|number| put(&mut writer, &[b'S', number], b"one"));
    machine.indexes.tamper(|index| drop(index.remove(&b"S\x03"[..])));
    put(&mut writer, b"S\x03", b"taken for a new row");
    put(&mut writer, b"C", &[6]);
    machine.crash_machine();
    machine
}

#[test]
fn a_wrong_counter_is_corrected_before_the_first_read_and_stays_correct() {
    let machine = miscounted();
    let writer = machine.open();
    assert_eq!(writer.reader().get(b"C").unwrap(), Some(vec![5]));
    assert_eq!(machine.mismatches(), 1);
    drop(writer);
    machine.crash_machine();
    let writer = machine.open();
    assert_eq!(rows(&writer).len(), 6);
    assert_eq!(writer.reader().get(b"C").unwrap(), Some(vec![5]));
    assert_eq!((machine.rebuilds(), machine.mismatches()), (2, 1));
}

#[test]
fn a_crash_while_counting_leaves_no_wrong_counter() {
    let mut crashes = 0;
    loop {
        let machine = miscounted();
        machine.faults.crash_in(crashes + 1);
        let opened = machine.try_to_open(0);
        if opened.is_ok() && !machine.faults.has_triggered() {
            break;
        }
        drop(opened);
        crashes += 1;
        match crashes % 2 {
            0 => machine.crash_process(),
            _ => machine.crash_machine(),
        }
        assert_eq!(machine.open().reader().get(b"C").unwrap(), Some(vec![5]), "crash {crashes}");
    }
    assert!(crashes > 20, "{crashes} crashes do not cover all calls of an opening");
}

#[test]
fn a_counter_that_is_found_wrong_while_serving_is_counted_again() {
    let machine = miscounted();
    let mut writer = machine.open();
    machine.indexes.tamper(|index| drop(index.remove(&b"S\x02"[..])));
    put(&mut writer, b"S\x02", b"taken for a new row");
    put(&mut writer, b"C", &[6]);
    assert_eq!(machine.mismatches(), 1);
    while writer.is_verifying() {
        writer.verify(3);
        put(&mut writer, b"T", b"a concurrent write");
    }
    assert_eq!(writer.reader().get(b"C").unwrap(), Some(vec![5]));
}

#[tokio::test]
async fn submissions_and_deliveries_are_counted_again_by_a_rebuild() {
    let folder = StoreFolder::create();
    let store = folder.open();
    let random = SeededRandom::new(2);
    bootstrap(&store, &KeyText::draw(&random), &random, at(0)).await.unwrap();
    let (form, queues) = form_with(&store, 1, &["one"]).await;
    for number in 0..3 {
        submit_with(&store, form, 5 + number, true).await;
    }
    let dead = claim(&store, queues[0], 10, 1).await;
    finish(&store, queues[0], dead, permanent(), 10).await;
    close(store).await;
    let queue = [form.to_bytes(), queues[0].integration.to_bytes()].concat();
    for counter in [[b"C".as_slice(), &form.to_bytes()].concat(), [b"n".as_slice(), &queue].concat()] {
        change_row(folder.path(), &counter, |_, _| None);
    }

    let store = folder.open();
    submit_with(&store, form, 20, true).await;
    let counts = totals(&store, form).await.remove(0);
    let counted = (count(&store, form).await, counts.pending, counts.dead);
    assert_eq!(counted, (1, 1, 0), "the missing counters are not detected");
    close(store).await;
    fs::remove_dir_all(folder.path().join("index")).unwrap();

    let store = folder.open();
    assert_counters(&store, form, at(21)).await;
    assert_eq!((count(&store, form).await, totals(&store, form).await[0].pending), (4, 3));
    submit_with(&store, form, 22, true).await;
    assert_eq!(count(&store, form).await, 5);
}
