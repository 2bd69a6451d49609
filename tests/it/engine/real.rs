//! The engine on real files and with the real index.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forms::store::StoreError;
use forms::store::sled::engine::Engine;
use forms::store::sled::job::Progress;
use forms::store::sled::options::{Event, Health, OpenError, Options, Report};
use forms::store::sled::tx::Direction;

/// Remembers what an engine says.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<Event>>>);

impl Heard {
    pub(crate) fn report(&self) -> Report {
        let heard = self.clone();
        Arc::new(move |event| heard.0.lock().unwrap().push(event))
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn options() -> Options {
    let fatal = |why: &str| panic!("the engine failed: {why}");
    Options { lock_wait: Duration::ZERO, min_free: 0, fatal: Arc::new(fatal), ..Options::default() }
}

pub(crate) fn open(path: &Path) -> (Engine, Heard) {
    let heard = Heard::default();
    (Engine::open_path(path, options(), heard.report()).unwrap(), heard)
}

async fn put(engine: &Engine, key: &str, body: &[u8]) {
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
async fn what_was_written_is_there_after_a_clean_stop_without_a_rebuild() {
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

    let (engine, heard) = open(folder.path());
    assert_eq!(heard.events(), []);
    assert_eq!(engine.get(b"Sa").unwrap(), None);
    assert_eq!(engine.get(b"Sb").unwrap(), Some(large.clone()));
    let rows = engine.scan(.., Direction::Descending, 10).unwrap();
    assert_eq!(rows, [(b"Sc".to_vec(), b"three".to_vec()), (b"Sb".to_vec(), large)]);
    engine.close().unwrap();
}

#[tokio::test]
async fn an_operation_sees_itself_and_one_that_fails_leaves_nothing() {
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
    assert_eq!(engine.get(b"Sb").unwrap(), Some(b"2".to_vec()));
    engine.close().unwrap();
    assert!(matches!(engine.write(|_| Ok(())).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(engine.health(), Health::Stopped { .. }));
}

#[tokio::test]
async fn a_store_is_held_by_one_process_which_says_who_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    engine.set_address("http://127.0.0.1:7000").unwrap();
    let refused = Engine::open_path(folder.path(), options(), Heard::default().report());
    let error = refused.err().unwrap();
    assert!(
        matches!(&error, OpenError::Locked { holder: Some(holder), .. } if holder.pid == std::process::id())
    );
    assert!(error.to_string().contains("use --url http://127.0.0.1:7000"), "{error}");
    engine.close().unwrap();
    open(folder.path()).0.close().unwrap();
}

#[tokio::test]
async fn a_background_job_is_called_until_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    for number in 0..30 {
        put(&engine, &format!("S{number:02}"), b"x").await;
    }
    let (done, finished) = tokio::sync::oneshot::channel();
    let mut done = Some(done);
    engine.background(move |tx| {
        let rows = tx.scan(.., Direction::Ascending, 7)?;
        if rows.is_empty() {
            done.take().unwrap().send(()).unwrap();
            return Ok(Progress::Done);
        }
        rows.into_iter().for_each(|(key, _)| tx.delete(key));
        Ok(Progress::More)
    });
    finished.await.unwrap();
    assert_eq!(engine.scan(.., Direction::Ascending, 5).unwrap(), []);
    engine.close().unwrap();
}
