//! Purges: slices have a bounded size, damage only delays them, and no key of the purged data remains.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forms::cpu_pool::CpuPool;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::form::admission::IDEMPOTENCY_RECORD_MILLIS;
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::edit::EditedContent;
use forms::id::FormId;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Change, IndexProvider, SledIndexes};
use forms::store::sled::engine::operation::WriteKind;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};
use forms::store::sled::engine::tx::Direction;
use forms::store::{
    CheckedEdit, Deliveries, Forms, IdempotentOperation, Keys, Maintenance, StepResult, Submissions,
};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::real_files::{EventLog, open, options};
use crate::store::deliveries::{claim, failure, finish, set_integrations, submit_with, webhook};
use crate::store::{
    SeededRandom, at, create_draft, edit_submission, idempotency_key, insert_workspace, list_newest,
    new_draft, patch, published_form, restore_submission, submit, trash_form, trash_submission, update_form,
    workspace,
};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn pieces_of_a_large_row_count_as_rows_of_a_slice() {
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
    assert_eq!(counts.await.unwrap(), (25, 30), "a row of a head and three pieces must count as four");
    engine.close().unwrap();
}

fn open_store(path: &Path, event_log: &EventLog) -> SledStore {
    let options = EngineOptions { verify_index: false, ..options() };
    SledStore::open(path, options, CpuPool::default(), Arc::new(SeededRandom::new(1)), event_log.report())
        .unwrap()
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
async fn a_purge_that_finds_damage_continues_after_the_index_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let event_log = EventLog::default();
    let store = open_store(folder.path(), &event_log);
    let form = published_form(&store, 1).await;
    for number in 0..3 {
        submit(&store, form, "{}", number).await;
    }
    store.close().await.unwrap();
    drop(store);
    damage_a_submission(folder.path());

    let store = open_store(folder.path(), &event_log);
    assert!(matches!(
        store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap(),
        StepResult::Done(())
    ));
    // The id is free again once nothing of the form is left.
    let purged = async {
        while !matches!(store.insert_form(new_draft(1, 1, 9)).await, Ok(StepResult::Done(_))) {
            yield_now().await;
        }
    };
    timeout(TIMEOUT, purged).await.expect("the purge did not finish");
    assert!(event_log.events().contains(&EngineEvent::Rebuilt), "{:?}", event_log.events());
    let left = list_newest(&store, workspace(1), form, None, 10).await.unwrap();
    assert_eq!(left.rows, []);
}

/// The keys in the closed store at `path` that contain `part`.
fn keys_with(path: &Path, part: &[u8]) -> Vec<Vec<u8>> {
    let (engine, _) = open(path);
    let rows = engine.reader().scan(.., Direction::Ascending, usize::MAX).unwrap();
    engine.close().unwrap();
    let contains = |key: &[u8]| key.windows(part.len()).any(|window| window == part);
    rows.into_iter().map(|(key, _)| key).filter(|key| contains(key)).collect()
}

/// Gives a form deliveries that have ended, are claimed, wait for a retry, and were not tried; and permits of confirmations.
async fn add_deliveries(store: &SledStore, form: FormId) {
    let events = ["submission.completed", "submission.updated", "submission.deleted", "form.deleted"];
    let queue = set_integrations(store, form, &[webhook("one", true, &events)], 6).await[0];
    for millis in 0..60 {
        let id = submit_with(store, form, 10 + millis, true).await;
        if millis % 20 == 0 {
            edit_submission(store, form, id, 0, "{}", 10 + millis).await;
            trash_submission(store, form, id, 10 + millis).await;
        }
    }
    for outcome in [Some(Outcome::Delivered), Some(failure()), None] {
        let claimed = claim(store, queue, 200, 10).await;
        assert_eq!(claimed.len(), 10);
        store.permit_confirmation(&claimed[0], 7, at(200)).await.unwrap();
        if let Some(outcome) = outcome {
            finish(store, queue, claimed, outcome, 200).await;
        }
    }
}

/// The number of rows of a kind in the closed store at `path`.
fn count_of_kind(path: &Path, kind: u8) -> usize {
    let (engine, _) = open(path);
    let rows = engine.reader().scan(vec![kind]..vec![kind + 1], Direction::Ascending, usize::MAX).unwrap();
    engine.close().unwrap();
    rows.len()
}

#[tokio::test]
async fn nothing_of_a_deleted_workspace_remains_but_its_mark() {
    let folder = tempfile::tempdir().unwrap();
    let event_log = EventLog::default();
    let store = open_store(folder.path(), &event_log);
    let (first, second) = (0x0777_0000_0000_0001_u64, 0x0777_0000_0000_0002_u64);
    insert_workspace(&store, 1, 0).await;
    insert_workspace(&store, 2, 0).await;
    for number in [first, second] {
        let form = published_form(&store, number).await;
        let ids = [submit(&store, form, "{}", 0).await, submit(&store, form, "{}", 1).await];
        assert!(matches!(trash_submission(&store, form, ids[0], 4).await, StepResult::Done(())));
        let edit = EditedContent { answers: "{\"q1\":\"tea\"}".into(), metadata: None };
        let checked =
            CheckedEdit { submission: workspace(1).form(form).submission(ids[1]), seen_edits: 0, edit };
        store.edit_submission(checked, at(2)).await.unwrap();
        let patch = patch(r#"{"slug":"tea","questions":[{"type":"email","title":"Mail"}]}"#);
        let updated = update_form(&store, workspace(1), form, patch, ExpectedRevision::Any, at(5)).await;
        assert!(matches!(updated, StepResult::Done(_)));
        add_deliveries(&store, form).await;
        if number == first {
            trash_form(&store, form, 5).await;
        }
    }
    let key = store.list_keys(workspace(1)).await.unwrap()[0].0.id;
    store.record_key_uses(vec![(key, at(1))]).await.unwrap();
    let deleted = store.delete_workspace(workspace(1), workspace(2)).await.unwrap();
    assert!(matches!(deleted, StepResult::Done(())));
    store.close().await.unwrap();
    drop(store);
    let remaining = || {
        let ids = [first, second].map(u64::to_be_bytes);
        let parts = [&ids[0][..], &ids[1], &key.to_bytes(), &workspace(1).to_bytes(), b"tea"];
        let keys = parts.into_iter().flat_map(|part| keys_with(folder.path(), part));
        // Those of the trash are swept with it, and form ids contain a workspace's.
        keys.filter(|key| key[0] != b'y').collect::<Vec<_>>()
    };
    let mark = [b"Z", &workspace(1).to_bytes()[..]].concat();
    let gone = async {
        while remaining() != [&mark[..]] {
            open_store(folder.path(), &event_log).close().await.unwrap();
        }
    };
    timeout(TIMEOUT, gone).await.unwrap_or_else(|_| panic!("left: {:?}", remaining()));
}

#[tokio::test]
async fn nothing_of_a_purged_form_or_submission_remains() {
    let folder = tempfile::tempdir().unwrap();
    let event_log = EventLog::default();
    let store = open_store(folder.path(), &event_log);
    let number = 0x0777_0000_0000_0001_u64;
    let form = published_form(&store, number).await;
    let ids = [submit(&store, form, "{}", 0).await, submit(&store, form, "{}", 1).await];
    for id in ids {
        for seen_edits in 0..250 {
            let edit =
                EditedContent { answers: format!("{{\"q1\":\"{seen_edits}\"}}").into(), metadata: None };
            let checked =
                CheckedEdit { submission: workspace(1).form(form).submission(id), seen_edits, edit };
            store.edit_submission(checked, at(2)).await.unwrap();
        }
    }
    let trashed = submit(&store, form, "{}", 3).await;
    store
        .trash_submission(workspace(1).form(form).submission(trashed), ExpectedRevision::Any, at(4))
        .await
        .unwrap();
    // Trashed, restored, trashed again, and purged in the trash.
    let restored = submit(&store, form, "{}", 3).await;
    assert!(matches!(trash_submission(&store, form, restored, 4).await, StepResult::Done(())));
    assert!(matches!(restore_submission(&store, form, restored, 4).await, StepResult::Done(_)));
    assert!(matches!(trash_submission(&store, form, restored, 5).await, StepResult::Done(())));
    for id in [restored, ids[0]] {
        let purged = store
            .purge_submission(workspace(1).form(form).submission(id), ExpectedRevision::Any, at(6))
            .await
            .unwrap();
        assert!(matches!(purged, StepResult::Done(())));
    }
    store.close().await.unwrap();
    drop(store);
    assert_eq!(keys_with(folder.path(), &restored.to_bytes()), Vec::<Vec<u8>>::new());
    let gone = async {
        while !keys_with(folder.path(), &ids[0].to_bytes()).is_empty() {
            open_store(folder.path(), &event_log).close().await.unwrap();
        }
    };
    timeout(TIMEOUT, gone).await.expect("history rows are left");
    let store = open_store(folder.path(), &event_log);
    assert!(store.find_submission(workspace(1).form(form).submission(ids[1])).await.unwrap().is_some());
    let patch = patch(r#"{"questions":[{"type":"email","title":"Mail"}]}"#);
    let updated = update_form(&store, workspace(1), form, patch, ExpectedRevision::Any, at(5)).await;
    assert!(matches!(updated, StepResult::Done(_)), "the question was not removed");
    add_deliveries(&store, form).await;
    trash_form(&store, form, 5).await;
    let attempt = idempotency_key(IdempotentOperation::RestoreForm(form), 1, 5);
    assert!(matches!(
        store.restore_form(workspace(1).form(form), attempt, at(6)).await.unwrap(),
        StepResult::Done(_)
    ));
    trash_form(&store, form, 7).await;
    let purged = store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    store.close().await.unwrap();
    drop(store);
    let is_swept = |keys: Vec<Vec<u8>>| keys.iter().all(|key| matches!(key[0], b'y' | b'i'));
    let gone = async {
        while !is_swept(keys_with(folder.path(), &number.to_be_bytes())) {
            open_store(folder.path(), &event_log).close().await.unwrap();
        }
    };
    timeout(TIMEOUT, gone).await.expect("more is left than trash entries and idempotency records");
    assert_eq!(count_of_kind(folder.path(), b'v'), 0, "deliveries are left");
    let store = open_store(folder.path(), &event_log);
    assert_eq!(store.empty_trash(at(1_000)).await.unwrap(), 0);
    store.close().await.unwrap();
    drop(store);
    let gone = async {
        let mut later = 1_u64;
        while !keys_with(folder.path(), &number.to_be_bytes()).is_empty() {
            let store = open_store(folder.path(), &event_log);
            store.erase_expired_keys(at(7 + IDEMPOTENCY_RECORD_MILLIS));
            create_draft(&store, 1, later, 8).await;
            store.close().await.unwrap();
            later += 1;
        }
    };
    timeout(TIMEOUT, gone).await.expect("expired idempotency records are left");
}

#[tokio::test]
async fn nothing_of_an_expired_submission_in_the_trash_remains() {
    let folder = tempfile::tempdir().unwrap();
    let event_log = EventLog::default();
    let store = open_store(folder.path(), &event_log);
    let form = published_form(&store, 0x0888_0000_0000_0001).await;
    let id = submit(&store, form, "{}", 0).await;
    for seen_edits in 0..250 {
        let edit = EditedContent { answers: format!("{{\"q1\":\"{seen_edits}\"}}").into(), metadata: None };
        let checked = CheckedEdit { submission: workspace(1).form(form).submission(id), seen_edits, edit };
        store.edit_submission(checked, at(2)).await.unwrap();
    }
    store
        .trash_submission(workspace(1).form(form).submission(id), ExpectedRevision::Any, at(4))
        .await
        .unwrap();
    assert_eq!(store.empty_trash(at(5)).await.unwrap(), 1);
    store.close().await.unwrap();
    drop(store);
    let gone = async {
        while !keys_with(folder.path(), &id.to_bytes()).is_empty() {
            open_store(folder.path(), &event_log).close().await.unwrap();
        }
    };
    timeout(TIMEOUT, gone).await.expect("history rows are left");
}
