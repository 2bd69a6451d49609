//! The engine on real files with sled as its index.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forms::store::sled::engine::Engine;
use forms::store::sled::engine::job::Progress;
use forms::store::sled::engine::operation::WriteKind;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions, EventSink, OpenError};
use forms::store::sled::engine::tx::{Direction, Tx};
use forms::store::{StoreError, StoreHealth};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::store::is_ready;

/// Records the events of an engine.
#[derive(Clone, Default)]
pub(crate) struct EventLog(Arc<Mutex<Vec<EngineEvent>>>);

impl EventLog {
    pub(crate) fn report(&self) -> EventSink {
        let event_log = self.clone();
        Arc::new(move |event| event_log.0.lock().unwrap().push(event))
    }

    pub(crate) fn events(&self) -> Vec<EngineEvent> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn options() -> EngineOptions {
    let fatal = |why: &str| panic!("the engine failed: {why}");
    EngineOptions {
        lock_wait: Duration::ZERO,
        min_free: 0,
        on_fatal: Arc::new(fatal),
        ..EngineOptions::default()
    }
}

pub(crate) fn open(path: &Path) -> (Engine, EventLog) {
    let event_log = EventLog::default();
    (Engine::open_path(path, options(), event_log.report()).unwrap(), event_log)
}

pub(super) async fn put(engine: &Engine, key: &str, body: &[u8]) {
    let (key, body) = (key.as_bytes().to_vec(), body.to_vec());
    engine
        .write(move |tx| {
            tx.put(key, body);
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn rows_are_kept_by_a_clean_stop_without_a_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..70_000_u32).map(|i| i as u8).collect();
    let (engine, _) = open(folder.path());
    put(&engine, "Sa", b"one").await;
    put(&engine, "Sb", &large).await;
    put(&engine, "Sc", b"three").await;
    engine
        .write(|tx| {
            tx.delete(b"Sa".to_vec());
            Ok(())
        })
        .await
        .unwrap();
    engine.close().unwrap();

    let (engine, event_log) = open(folder.path());
    let is_rebuilding = |event: &EngineEvent| matches!(event, EngineEvent::Rebuilding { .. });
    assert!(!event_log.events().iter().any(is_rebuilding), "{:?}", event_log.events());
    assert_eq!(engine.reader().get(b"Sa").unwrap(), None);
    assert_eq!(engine.reader().get(b"Sb").unwrap(), Some(large.clone()));
    let rows = engine.reader().scan(.., Direction::Descending, 10).unwrap();
    assert_eq!(rows, [(b"Sc".to_vec(), b"three".to_vec()), (b"Sb".to_vec(), large)]);
    engine.close().unwrap();
}

#[tokio::test]
async fn a_write_reads_its_own_changes_and_a_failed_one_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    let rows = engine.write(|tx| {
        tx.put(b"Sa".to_vec(), b"1".to_vec());
        tx.put(b"Sb".to_vec(), b"2".to_vec());
        tx.delete(b"Sa".to_vec());
        tx.scan(b"S".to_vec()..b"T".to_vec(), Direction::Ascending, 5)
    });
    assert_eq!(rows.await.unwrap(), [(b"Sb".to_vec(), b"2".to_vec())]);
    let refused = engine.write::<()>(|tx| {
        tx.put(b"Sb".to_vec(), b"3".to_vec());
        Err(StoreError::Busy)
    });
    assert!(matches!(refused.await, Err(StoreError::Busy)));
    let panicked = engine.write::<()>(|tx| {
        tx.put(b"Sb".to_vec(), b"4".to_vec());
        panic!("on purpose")
    });
    assert!(matches!(panicked.await, Err(StoreError::Panicked(why)) if why == "on purpose"));
    let reserved = engine.write(|tx| {
        tx.put(b"Pa".to_vec(), Vec::new());
        Ok(())
    });
    assert!(matches!(reserved.await, Err(StoreError::Panicked(_))));
    assert_eq!(engine.reader().get(b"Sb").unwrap(), Some(b"2".to_vec()));
    engine.close().unwrap();
    assert!(matches!(engine.write(|_| Ok(())).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(engine.health(), StoreHealth::Stopped(_)));
}

#[tokio::test]
async fn loose_permissions_are_repaired_and_temporary_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/store");
    let (engine, _) = open(&path);
    put(&engine, "Sa", b"one").await;
    engine.close().unwrap();
    for leftover in
        ["journal/next.tmp", "state.tmp", "index.new/db", "index.old/db", "index/snap.1.generating"]
    {
        fs::create_dir_all(path.join(leftover).parent().unwrap()).unwrap();
        fs::write(path.join(leftover), b"half").unwrap();
    }
    fs::set_permissions(path.join("state"), fs::Permissions::from_mode(0o644)).unwrap();

    let (engine, event_log) = open(&path);
    let repaired = path.join("state").display().to_string();
    assert!(
        event_log.events().contains(&EngineEvent::PermissionsRepaired { path: repaired }),
        "{:?}",
        event_log.events()
    );
    assert_eq!(engine.reader().get(b"Sa").unwrap(), Some(b"one".to_vec()));
    engine.close().unwrap();
    let found = list_modes(&path);
    let leftovers =
        |found: &&(String, u32)| ["tmp", "generating", "new", "old"].iter().any(|end| found.0.ends_with(end));
    assert_eq!(found.iter().find(leftovers), None);
    assert_eq!(found.iter().find(|(_, mode)| mode & 0o077 != 0), None, "readable by others");
}

/// Every file and folder in a folder, with its mode.
fn list_modes(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        found.push((entry.path().display().to_string(), metadata.permissions().mode()));
        if metadata.is_dir() {
            found.extend(list_modes(&entry.path()));
        }
    }
    found
}

#[tokio::test]
async fn concurrent_writers_all_store_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    let writers = (0..200_u32).map(|number| {
        let engine = engine.clone();
        let work = move |tx: &mut Tx<'_>| {
            let count = tx.get(b"C")?.map_or(0, |body| u32::from_be_bytes(body.try_into().unwrap()));
            tx.put_last(b"C".to_vec(), (count + 1).to_be_bytes().to_vec());
            tx.put(format!("S{number:03}").into_bytes(), vec![1; 3000]);
            Ok(count)
        };
        tokio::spawn(async move {
            match number % 50 {
                0 => engine.write_as(WriteKind::Large, work).await,
                _ => engine.write(work).await,
            }
        })
    });
    let mut counts = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        counts.push(writer.await.unwrap().unwrap());
    }
    counts.sort_unstable();
    assert!(counts.into_iter().eq(0..200), "a writer did not see the one before it");
    assert_eq!(engine.reader().scan(b"S".to_vec().., Direction::Ascending, 500).unwrap().len(), 200);
    engine.close().unwrap();
}

#[tokio::test]
async fn a_background_job_is_called_until_it_is_done_and_repeats_a_slice_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    let (failed, (done, finished)) = (AtomicBool::new(false), channel());
    engine.background(move |tx| {
        let number = tx.scan(.., Direction::Ascending, 9)?.len() as u8;
        tx.put(vec![b'S', number], vec![1]);
        if number == 1 && !failed.swap(true, Ordering::Relaxed) {
            return Err(StoreError::Busy);
        }
        if number == 3 {
            done.send(()).unwrap();
        }
        Ok(if number == 3 { Progress::Done } else { Progress::More })
    });
    tokio::task::spawn_blocking(move || finished.recv().unwrap()).await.unwrap();
    engine.close().unwrap();
    let (engine, _) = open(folder.path());
    assert_eq!(engine.reader().scan(.., Direction::Ascending, 9).unwrap().len(), 4);
    engine.close().unwrap();
}

/// Begins a write that keeps the writer busy: the first channel reports that it has begun, dropping the second ends it.
fn block_writer(engine: &Engine) -> (Receiver<()>, Sender<()>) {
    let ((begun, begins), (release, released)) = (channel(), channel());
    let engine = engine.clone();
    tokio::spawn(async move {
        let work = move |_: &mut Tx<'_>| {
            begun.send(()).unwrap();
            assert!(released.recv().is_err());
            Ok(())
        };
        engine.write(work).await.unwrap();
    });
    (begins, release)
}

#[tokio::test]
async fn a_full_queue_is_busy_while_the_writer_processes_its_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    let (first_begins, first) = block_writer(&engine);
    yield_now().await;
    first_begins.recv().unwrap();
    let (second_begins, second) = block_writer(&engine);
    yield_now().await;
    let mut waiting: Vec<_> = (0..1023).map(|_| Box::pin(engine.write(|_| Ok(())))).collect();
    for write in &mut waiting[..1022] {
        assert!(!is_ready(write).await);
    }
    drop(first);
    second_begins.recv().unwrap();
    // The first write is done, so the queue has one free place.
    assert!(!is_ready(&mut waiting[1022]).await);
    let answer = timeout(Duration::from_secs(60), engine.write(|_| Ok(()))).await;
    assert!(matches!(answer, Ok(Err(StoreError::Busy))), "{answer:?}");
    drop(second);
    for write in waiting {
        write.await.unwrap();
    }
    engine.write(|_| Ok(())).await.unwrap();
    engine.close().unwrap();
}

#[tokio::test]
async fn a_symbolic_link_in_place_of_a_store_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, letter) = (folder.path().join("store"), folder.path().join("letter.txt"));
    let (engine, _) = open(&path);
    put(&engine, "Sa", b"one").await;
    engine.close().unwrap();
    for name in ["state.tmp", "lock", "journal/00000001.log"] {
        fs::write(&letter, "dear").unwrap();
        let (file, backup) = (path.join(name), folder.path().join("backup"));
        let existed = fs::rename(&file, &backup).is_ok();
        symlink(&letter, &file).unwrap();
        let Err(OpenError::Io { source, .. }) =
            Engine::open_path(&path, options(), EventLog::default().report())
        else {
            panic!("{name} was followed")
        };
        let expected = format!("`{}` is a symbolic link; a store has none", file.display());
        assert_eq!(source.to_string(), expected);
        assert_eq!(fs::read_to_string(&letter).unwrap(), "dear");
        fs::remove_file(&file).unwrap();
        if existed {
            fs::rename(&backup, &file).unwrap();
        }
    }
    let (engine, _) = open(&path);
    assert_eq!(engine.reader().get(b"Sa").unwrap(), Some(b"one".to_vec()));
    engine.close().unwrap();
}

#[test]
fn a_folder_with_other_files_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let refused = Engine::open_path(folder.path(), options(), EventLog::default().report());
    assert!(matches!(refused, Err(OpenError::Io { .. })));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1);
}
