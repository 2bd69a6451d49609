//! Faults of the index: damage causes one rebuild, a full disk is temporary, and another process's lock is respected.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use axum::body::Body;
use axum::http::Request;
use forms::server::{Local, open_local};
use forms::store::StoreError;
use forms::store::sled::engine::Engine;
use forms::store::sled::engine::disk::Disk;
use forms::store::sled::engine::index::{IndexProvider, SledIndexes};
use forms::store::sled::engine::operation::WriteKind;
use forms::store::sled::engine::options::OpenError;
use serde_json::{Value, json};

use super::machine::{Machine, crashed, put, put_as, rows, verify_all};
use super::real_files::{self, EventLog, open, options};
use super::real_store::{change_row, damage_row};
use crate::harness::{Call, TestResponse};

#[test]
fn damage_found_while_catching_up_causes_a_rebuild_and_no_failed_start() {
    let machine = crashed();
    machine.indexes.damage();
    assert_eq!(rows(&machine.open()).len(), 30);
    assert_eq!(machine.rebuilds(), 1);
    machine.crash_process();
    assert_eq!(rows(&machine.open()).len(), 30);
    assert_eq!(machine.rebuilds(), 1, "the new index was not trusted");
}

#[test]
fn damage_found_while_writing_causes_a_rebuild_and_loses_no_write() {
    let machine = crashed();
    let mut writer = machine.open();
    machine.indexes.damage();
    put(&mut writer, b"Sx", b"x");
    assert_eq!((rows(&writer).len(), machine.rebuilds()), (31, 1));
    machine.indexes.damage();
    writer.flush();
    put(&mut writer, b"Sy", b"y");
    assert_eq!(rows(&writer).len(), 32);
    assert!(!writer.is_stopped());
    writer.close().unwrap();
    assert_eq!(rows(&machine.open()).len(), 32);
}

#[test]
fn an_index_without_disk_space_is_not_damaged_and_works_again_by_itself() {
    // The calls after the sync of the journal, which are the index's.
    for call in 5..8 {
        let machine = crashed();
        let mut writer = machine.open();
        verify_all(&mut writer);
        machine.faults.fail_in(call, io::ErrorKind::StorageFull);
        let stored = put_as(&mut writer, WriteKind::Normal, b"Sx", b"x");
        if call == 7 {
            // The change itself was applied; the flush meets the fault.
            writer.flush();
        }
        assert!(stored.is_ok(), "call {call}: refused although it is in the journal: {stored:?}");
        assert!(!writer.is_stopped(), "call {call}");
        assert!(writer.reader().get(b"S07").is_err(), "call {call}: a read succeeded without the index");
        let refused = put_as(&mut writer, WriteKind::Normal, b"Sy", b"y");
        assert!(matches!(refused, Err(StoreError::Full)), "call {call}: {refused:?}");
        writer.check_free_space();
        put(&mut writer, b"Sz", b"z");
        assert_eq!(rows(&writer).len(), 32, "call {call}");
        verify_all(&mut writer);
        assert_eq!(machine.rebuilds(), 0, "call {call}");
    }
}

#[test]
fn an_index_whose_reads_fail_without_disk_space_is_opened_again() {
    let machine = crashed();
    let mut writer = machine.open();
    machine.indexes.fill();
    assert!(matches!(writer.reader().get(b"S07"), Err(StoreError::Full)));
    assert!(writer.is_low_on_space());
    writer.check_free_space();
    assert_eq!(rows(&writer).len(), 30);
    assert!(!writer.is_low_on_space());
    assert_eq!(machine.rebuilds(), 0);
}

#[test]
fn a_rebuild_waits_for_disk_space_and_keeps_the_old_index_until_then() {
    for call in 1..40 {
        let machine = crashed();
        let mut writer = machine.open();
        verify_all(&mut writer);
        machine.indexes.tamper(|index| index.get_mut(&b"S07"[..]).unwrap()[3] ^= 1);
        assert!(matches!(writer.reader().get(b"S07"), Err(StoreError::Damaged(_))));
        machine.faults.fail_in(call, io::ErrorKind::StorageFull);
        verify_all(&mut writer);
        assert!(!writer.is_stopped(), "call {call}");
        writer.check_free_space();
        verify_all(&mut writer);
        assert_eq!(writer.reader().get(b"S07").unwrap(), Some(vec![7; 300]), "call {call}");
        assert_eq!(rows(&writer).len(), 30, "call {call}");
    }
}

#[test]
fn a_journal_that_is_shorter_than_the_index_knows_is_refused_in_any_boot() {
    let machine = Machine::new(1);
    let mut writer = machine.open();
    let path = "journal/00000001.log";
    let segment = || {
        let file = machine.disk.open(path).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    };
    (0..6_u8).for_each(|number| put(&mut writer, &[b'S', number], b"early"));
    let shorter = segment();
    (6..9_u8).for_each(|number| put(&mut writer, &[b'S', number], b"late"));
    writer.flush();
    machine.crash_process();
    machine.disk.open(path).unwrap().write_at(&shorter, 0).unwrap();
    machine.disk.reboot();
    for _ in 0..2 {
        let error = machine.try_to_open(0).err().expect("three changes are missing");
        assert!(matches!(error, OpenError::Damaged(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("the changes in between are missing"), "{text}");
        assert!(text.contains("restore"), "the error does not say what to do: {text}");
    }
    assert_eq!(machine.rebuilds(), 0);
}

#[test]
fn an_index_locked_by_another_process_is_not_damaged() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).0.close().unwrap();
    let other_process = SledIndexes::new(folder.path(), 4 << 20).unwrap();
    let index = other_process.open("index").unwrap();
    let event_log = EventLog::default();
    let refused = Engine::open_path(folder.path(), options(), event_log.report());
    assert!(matches!(refused, Err(OpenError::Locked { .. })), "{:?}", refused.err());
    assert_eq!(event_log.events(), []);
    other_process.close("index", index).unwrap();
    open(folder.path()).0.close().unwrap();
}

async fn send(local: &Local, method: &str, path: &str, body: Value) -> TestResponse {
    let key = local.key.as_ref().expect("the key of the store").reveal().to_owned();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    Call::new(local.api.clone(), request.body(body).unwrap()).key(&key).send().await
}

async fn call(local: &Local, method: &str, path: &str, body: Value) -> Value {
    let answer = send(local, method, path, body).await;
    assert!(answer.status.is_success(), "{method} {path}: {}", answer.text());
    answer.json()
}

fn inode_of_index(data: &Path) -> u64 {
    fs::metadata(data.join("index/db")).unwrap().ino()
}

#[tokio::test]
async fn damage_found_by_the_first_reads_of_a_start_causes_one_rebuild() {
    for prefix in [&b"W"[..], b"K", b"k", b"Mbs", b"Ma"] {
        let folder = tempfile::tempdir().unwrap();
        let local = open_local(folder.path()).await.unwrap();
        let form = call(&local, "POST", "/api/v1/forms", json!({"title": "Kept", "questions": []})).await;
        let path = format!("/api/v1/forms/{}", form["id"].as_str().unwrap());
        let before = call(&local, "GET", &path, Value::Null).await;
        local.close().await.unwrap();
        damage_row(folder.path(), prefix);
        let damaged = inode_of_index(folder.path());

        let local = open_local(folder.path()).await.unwrap_or_else(|error| panic!("{prefix:?}: {error}"));
        assert_eq!(call(&local, "GET", &path, Value::Null).await, before);
        assert_ne!(inode_of_index(folder.path()), damaged, "{prefix:?}: not rebuilt");
        local.close().await.unwrap();
        let rebuilt = inode_of_index(folder.path());
        let local = open_local(folder.path()).await.unwrap();
        assert_eq!(call(&local, "GET", &path, Value::Null).await, before);
        assert_eq!(inode_of_index(folder.path()), rebuilt, "{prefix:?}: rebuilt twice");
        local.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_store_that_is_dropped_is_not_marked_as_clean() {
    let folder = tempfile::tempdir().unwrap();
    let trust = || {
        let state = fs::read_to_string(folder.path().join("state")).unwrap();
        state.lines().find_map(|line| line.strip_prefix("trust ").map(str::to_owned)).unwrap()
    };
    let (engine, _) = open(folder.path());
    real_files::put(&engine, "Sa", b"one").await;
    drop(engine);
    assert!(trust().starts_with("boot "), "{}", trust());
    open(folder.path()).0.close().unwrap();
    assert!(trust().starts_with("clean "), "{}", trust());
}

/// Every file in a folder except the lock file, which each process that opens the store rewrites.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(content(&entry)),
            false if entry.ends_with("lock") => {}
            false => found.push((entry.display().to_string(), fs::read(&entry).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).0.close().unwrap();
    let state = fs::read_to_string(folder.path().join("state")).unwrap();
    let (_, rest) = state.rsplit_once("checksum ").unwrap().0.split_once("instance").unwrap();
    let state = format!("format 7\nversion 9.1.0\ninstance{rest}something new\n");
    let checksum = crc32c::crc32c(state.as_bytes());
    fs::write(folder.path().join("state"), format!("{state}checksum {checksum:08x}\n")).unwrap();
    let before = content(folder.path());
    let refused = Engine::open_path(folder.path(), options(), EventLog::default().report());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("use forms 9.1.0 or newer"), "{error}");
    assert!(content(folder.path()) == before, "the store was changed");
}

#[tokio::test]
async fn an_intact_row_that_cannot_be_decoded_is_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let local = open_local(folder.path()).await.unwrap();
    let questions = json!([{"type": "email", "title": "Mail"}]);
    let body = json!({"title": "Kept", "questions": questions});
    let form = call(&local, "POST", "/api/v1/forms", body).await;
    let form = format!("/api/v1/forms/{}", form["id"].as_str().unwrap());
    call(&local, "PATCH", &form, json!({"status": "published"})).await;
    let submissions = format!("{form}/submissions");
    let submission = call(&local, "POST", &submissions, json!({"answers": {}})).await;
    local.close().await.unwrap();
    let newer: [(&[u8], &[u8]); 2] =
        [(b"F", b"{\"written\":\"by a newer version\"}\0"), (b"S", &[0, 0, 0, 1, 8, 0, 0, 0, 0, 0])];
    for (prefix, content) in newer {
        change_row(folder.path(), prefix, |key, _| {
            let checksum = crc32c::crc32c_append(crc32c::crc32c(key), content);
            Some([content, &checksum.to_be_bytes()].concat())
        });
    }
    let local = open_local(folder.path()).await.unwrap();
    let submission = format!("{submissions}/{}", submission["id"].as_str().unwrap());
    for path in [&form, &submission, &form] {
        let answer = send(&local, "GET", path, Value::Null).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (500, "internal"));
        assert_eq!(answer.headers.get("retry-after"), None, "a retry cannot succeed");
    }
    // An untrusted index would be verified now, or stay untrusted afterwards.
    local.close().await.unwrap();
    let state = fs::read_to_string(folder.path().join("state")).unwrap();
    assert!(state.contains("\ntrust clean "), "{state}");
}
