//! What a purge needs of the engine: slices that are not too large, and to go on after damage.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forms::cpu_pool::CpuPool;
use forms::domain::form::admission::IDEMPOTENCY_RECORD_MILLIS;
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::edit::EditedContent;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Change, IndexProvider, SledIndexes};
use forms::store::sled::engine::operation::WriteKind;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};
use forms::store::sled::engine::tx::Direction;
use forms::store::{CheckedEdit, Forms, IdempotentOperation, Maintenance, StepResult, Submissions};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::real::{Heard, open, options};
use crate::store::{
    Scrambled, at, change, draft, make, newest, published, put_back, remove, retry, submit, trash,
    update_form, workspace,
};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn pieces_count_as_rows_of_a_slice() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = open(folder.path());
    let fill = engine.write_as(WriteKind::Large, |tx| {
        (0..40).for_each(|number| tx.put(vec![b'S', number], vec![1; 3 * 4096]));
        (0..40).for_each(|number| tx.put(vec![b'T', number], vec![1; 4096]));
        Ok(())
    });
    fill.await.unwrap();
    let counts = engine.write(|tx| {
        let large = tx.stored_keys(vec![b'S']..vec![b'T'], 100)?.len();
        let small = tx.stored_keys(vec![b'T']..vec![b'U'], 30)?.len();
        Ok((large, small))
    });
    assert_eq!(counts.await.unwrap(), (25, 30), "a head and three pieces are four");
    engine.close().unwrap();
}

fn open_store(path: &Path, heard: &Heard) -> SledStore {
    let options = EngineOptions { verify_index: false, ..options() };
    SledStore::open(path, options, CpuPool::default(), Arc::new(Scrambled::new(1)), heard.report()).unwrap()
}

/// Flips a bit in the first submission of the index.
fn damage_a_submission(path: &Path) {
    let indexes = SledIndexes::new(path, 4 << 20).unwrap();
    let index = indexes.open("index").unwrap();
    let mut first = None;
    let visit = &mut |key: &[u8], cell: &[u8]| {
        first = Some((key.to_vec(), cell.to_vec()));
        false
    };
    index.range(Bound::Included(b"S"), Bound::Excluded(b"T"), Direction::Ascending, visit).unwrap();
    let (key, mut cell) = first.unwrap();
    cell[10] ^= 1;
    index.apply(&mut [Change { key: &key, cell: Some(&cell) }].into_iter()).unwrap();
    indexes.close("index", index).unwrap();
}

#[tokio::test]
async fn a_purge_that_meets_damage_goes_on_once_the_index_is_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let store = open_store(folder.path(), &heard);
    let form = published(&store, 1).await;
    for number in 0..3 {
        submit(&store, form, "{}", number).await;
    }
    store.close().await.unwrap();
    drop(store);
    damage_a_submission(folder.path());

    let store = open_store(folder.path(), &heard);
    assert!(matches!(
        store.purge_form(workspace(1), form, ExpectedRevision::Any).await.unwrap(),
        StepResult::Done(())
    )); // The id is free again when nothing of the form is left.
    let over = async {
        while !matches!(store.insert_form(draft(1, 1, 9)).await, Ok(StepResult::Done(_))) {
            yield_now().await;
        }
    };
    timeout(PATIENCE, over).await.expect("the purge comes to its end");
    assert!(heard.events().contains(&EngineEvent::Rebuilt), "{:?}", heard.events());
    let left = newest(&store, workspace(1), form, None, 10).await.unwrap();
    assert_eq!(left.rows, []);
}

/// Keys in the store at `path`, which is closed, that hold `part`.
fn keys_with(path: &Path, part: &[u8]) -> Vec<Vec<u8>> {
    let (engine, _) = open(path);
    let rows = engine.reader().scan(.., Direction::Ascending, usize::MAX).unwrap();
    engine.close().unwrap();
    let holds = |key: &[u8]| key.windows(part.len()).any(|window| window == part);
    rows.into_iter().map(|(key, _)| key).filter(|key| holds(key)).collect()
}

#[tokio::test]
async fn nothing_is_left_of_what_was_purged() {
    let folder = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let store = open_store(folder.path(), &heard);
    let number = 0x0777_0000_0000_0001_u64;
    let form = published(&store, number).await;
    let ids = [submit(&store, form, "{}", 0).await, submit(&store, form, "{}", 1).await];
    for id in ids {
        for seen_edits in 0..250 {
            let edit =
                EditedContent { answers: format!("{{\"q1\":\"{seen_edits}\"}}").into(), metadata: None };
            let checked = CheckedEdit { form, submission: id, seen_edits, edit };
            store.edit_submission(workspace(1), checked, at(2)).await.unwrap();
        }
    }
    let trashed = submit(&store, form, "{}", 3).await;
    store.trash_submission(workspace(1), form, trashed, ExpectedRevision::Any, at(4)).await.unwrap(); // In and out of the trash, and purged there.
    let restless = submit(&store, form, "{}", 3).await;
    assert!(matches!(remove(&store, form, restless, 4).await, StepResult::Done(())));
    assert!(matches!(put_back(&store, form, restless, 4).await, StepResult::Done(_)));
    assert!(matches!(remove(&store, form, restless, 5).await, StepResult::Done(())));
    for id in [restless, ids[0]] {
        let purged = store.purge_submission(workspace(1), form, id, ExpectedRevision::Any).await.unwrap();
        assert!(matches!(purged, StepResult::Done(())));
    }
    store.close().await.unwrap();
    drop(store);
    assert_eq!(keys_with(folder.path(), &restless.to_bytes()), Vec::<Vec<u8>>::new());
    let gone = async {
        while !keys_with(folder.path(), &ids[0].to_bytes()).is_empty() {
            open_store(folder.path(), &heard).close().await.unwrap();
        }
    };
    timeout(PATIENCE, gone).await.expect("what edits replaced goes, too");
    let store = open_store(folder.path(), &heard);
    assert!(store.find_submission(workspace(1), form, ids[1]).await.unwrap().is_some());
    let asks = change(r#"{"questions":[{"type":"email","title":"Mail"}]}"#);
    let asked = update_form(&store, workspace(1), form, asks, ExpectedRevision::Any, at(5)).await;
    assert!(matches!(asked, StepResult::Done(_)), "a question goes, and its id is kept");
    trash(&store, form, 5).await;
    let attempt = retry(IdempotentOperation::RestoreForm(form), 1, 5);
    assert!(matches!(
        store.restore_form(workspace(1), form, attempt, at(6)).await.unwrap(),
        StepResult::Done(_)
    ));
    trash(&store, form, 7).await;
    let purged = store.purge_form(workspace(1), form, ExpectedRevision::Any).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    store.close().await.unwrap();
    drop(store);
    let swept = |keys: Vec<Vec<u8>>| keys.iter().all(|key| matches!(key[0], b'y' | b'i'));
    let gone = async {
        while !swept(keys_with(folder.path(), &number.to_be_bytes())) {
            open_store(folder.path(), &heard).close().await.unwrap();
        }
    };
    timeout(PATIENCE, gone).await.expect("nothing is left but notes that sweep the trash and memories");
    let store = open_store(folder.path(), &heard);
    assert_eq!(store.empty_trash(at(5)).await.unwrap(), 0);
    store.close().await.unwrap();
    drop(store);
    let gone = async {
        let mut later = 1_u64;
        while !keys_with(folder.path(), &number.to_be_bytes()).is_empty() {
            let store = open_store(folder.path(), &heard);
            store.erase_expired_keys(at(7 + IDEMPOTENCY_RECORD_MILLIS));
            make(&store, 1, later, 8).await;
            store.close().await.unwrap();
            later += 1;
        }
    };
    timeout(PATIENCE, gone).await.expect("expired keys go");
}

#[tokio::test]
async fn nothing_is_left_of_what_lay_in_the_trash_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let store = open_store(folder.path(), &heard);
    let form = published(&store, 0x0888_0000_0000_0001).await;
    let id = submit(&store, form, "{}", 0).await;
    for seen_edits in 0..250 {
        let edit = EditedContent { answers: format!("{{\"q1\":\"{seen_edits}\"}}").into(), metadata: None };
        let checked = CheckedEdit { form, submission: id, seen_edits, edit };
        store.edit_submission(workspace(1), checked, at(2)).await.unwrap();
    }
    store.trash_submission(workspace(1), form, id, ExpectedRevision::Any, at(4)).await.unwrap();
    assert_eq!(store.empty_trash(at(5)).await.unwrap(), 1);
    store.close().await.unwrap();
    drop(store);
    let gone = async {
        while !keys_with(folder.path(), &id.to_bytes()).is_empty() {
            open_store(folder.path(), &heard).close().await.unwrap();
        }
    };
    timeout(PATIENCE, gone).await.expect("what edits replaced goes, too");
}
