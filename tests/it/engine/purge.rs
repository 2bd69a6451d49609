//! Purges: slices have a bounded size, damage only delays them, and no key of the purged data remains.

use forms::domain::delivery::attempt::Outcome;
use forms::domain::form::admission::IDEMPOTENCY_RECORD_MILLIS;
use forms::id::FormId;
use forms::store::sled::SledStore;
use forms::store::sled::engine::operation::WriteKind;
use forms::store::sled::engine::options::EngineEvent;
use forms::store::{Deliveries, Forms, IdempotentOperation, Keys, Maintenance, StepResult};

use super::real_files::open;
use super::real_store::{StoreFolder, close, damage_row};
use crate::store::deliveries::{claim, failure, finish, set_integrations, submit_with, webhook};
use crate::store::{
    at, change_form, create_draft, done, edit_submission, find_submission, idempotency_key, insert_workspace,
    list_newest, new_draft, published_form, purge_form, purge_submission, quarantine, restore_submission,
    submit, trash_form, trash_submission, wait_until, workspace,
};

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

#[tokio::test]
async fn a_purge_that_finds_damage_continues_after_the_index_is_rebuilt() {
    let folder = StoreFolder::create();
    let store = folder.open();
    let form = published_form(&store, 1).await;
    for number in 0..3 {
        submit(&store, form, "{}", number).await;
    }
    close(store).await;
    damage_row(folder.path(), b"S");

    let store = folder.open();
    done(purge_form(&store, form).await);
    // The id is free again once nothing of the form is left.
    wait_until(async || matches!(store.insert_form(new_draft(1, 1, 9)).await, Ok(StepResult::Done(_)))).await;
    assert!(folder.event_log.events().contains(&EngineEvent::Rebuilt), "{:?}", folder.event_log.events());
    let left = list_newest(&store, form, None, 10).await.unwrap();
    assert_eq!(left.rows, []);
}

/// Gives a form deliveries that have ended, are claimed, wait for a retry, and were not tried; and permits of confirmations.
async fn add_deliveries(store: &SledStore, form: FormId) {
    let events = ["submission.completed", "submission.updated", "submission.deleted", "form.deleted"];
    let queue = set_integrations(store, form, &[webhook("one", true, &events)], 6).await[0];
    for millis in 0..24 {
        let id = submit_with(store, form, 10 + millis, true).await;
        if millis % 8 == 0 {
            edit_submission(store, form, id, 0, "{}", 10 + millis).await;
            trash_submission(store, form, id, 10 + millis).await;
        }
    }
    for outcome in [Some(Outcome::Delivered), Some(failure()), None] {
        let claimed = claim(store, queue, 200, 4).await;
        assert_eq!(claimed.len(), 4);
        store.permit_confirmation(&claimed[0], 7, at(200)).await.unwrap();
        if let Some(outcome) = outcome {
            finish(store, queue, claimed, outcome, 200).await;
        }
    }
}

#[tokio::test]
async fn nothing_of_a_deleted_workspace_remains_but_its_mark() {
    let folder = StoreFolder::create();
    let store = folder.open();
    let (first, second) = (0x0777_0000_0000_0001_u64, 0x0777_0000_0000_0002_u64);
    insert_workspace(&store, 1, 0).await;
    insert_workspace(&store, 2, 0).await;
    for number in [first, second] {
        let form = published_form(&store, number).await;
        let ids = [submit(&store, form, "{}", 0).await, submit(&store, form, "{}", 1).await];
        done(trash_submission(&store, form, ids[0], 4).await);
        done(edit_submission(&store, form, ids[1], 0, "{\"q1\":\"tea\"}", 2).await);
        quarantine(&store, form, "{}", 3).await;
        let change = r#"{"slug":"tea","questions":[{"type":"email","title":"Mail"}]}"#;
        done(change_form(&store, form, change, 5).await);
        add_deliveries(&store, form).await;
        if number == first {
            trash_form(&store, form, 5).await;
        }
    }
    let key = store.list_keys(workspace(1)).await.unwrap()[0].0.id;
    store.record_key_uses(vec![(key, at(1))]).await.unwrap();
    done(store.delete_workspace(workspace(1), workspace(2)).await.unwrap());
    close(store).await;
    let remaining = || {
        let ids = [first, second].map(u64::to_be_bytes);
        let parts = [&ids[0][..], &ids[1], &key.to_bytes(), &workspace(1).to_bytes(), b"tea"];
        let keys = parts.into_iter().flat_map(|part| folder.keys_with(part));
        // Those of the trash are swept with it, and form ids contain a workspace's.
        keys.filter(|key| key[0] != b'y').collect::<Vec<_>>()
    };
    let mark = [b"Z", &workspace(1).to_bytes()[..]].concat();
    folder.reopen_until(|| remaining() == [&mark[..]]).await;
}

#[tokio::test]
async fn nothing_of_a_purged_form_or_submission_remains() {
    let folder = StoreFolder::create();
    let store = folder.open();
    let number = 0x0777_0000_0000_0001_u64;
    let form = published_form(&store, number).await;
    let ids = [submit(&store, form, "{}", 0).await, submit(&store, form, "{}", 1).await];
    for id in ids {
        for seen in 0..250 {
            done(edit_submission(&store, form, id, seen, &format!("{{\"q1\":\"{seen}\"}}"), 2).await);
        }
    }
    let trashed = submit(&store, form, "{}", 3).await;
    done(trash_submission(&store, form, trashed, 4).await);
    // Trashed, restored, trashed again, and purged in the trash.
    let restored = submit(&store, form, "{}", 3).await;
    done(trash_submission(&store, form, restored, 4).await);
    done(restore_submission(&store, form, restored, 4).await);
    done(trash_submission(&store, form, restored, 5).await);
    for id in [restored, ids[0]] {
        done(purge_submission(&store, form, id).await);
    }
    close(store).await;
    assert_eq!(folder.keys_with(&restored.to_bytes()), Vec::<Vec<u8>>::new());
    // Its history is erased in the background.
    folder.reopen_until(|| folder.keys_with(&ids[0].to_bytes()).is_empty()).await;
    let store = folder.open();
    assert!(find_submission(&store, form, ids[1]).await.is_some());
    done(change_form(&store, form, r#"{"questions":[{"type":"email","title":"Mail"}]}"#, 5).await);
    add_deliveries(&store, form).await;
    trash_form(&store, form, 5).await;
    let attempt = idempotency_key(IdempotentOperation::RestoreForm(form), 1, 5);
    done(store.restore_form(workspace(1).form(form), attempt, at(6)).await.unwrap());
    trash_form(&store, form, 7).await;
    done(purge_form(&store, form).await);
    close(store).await;
    // Entries of the trash and idempotency records are swept with the others, when they expire.
    let left = || folder.keys_with(&number.to_be_bytes());
    folder.reopen_until(|| left().iter().all(|key| matches!(key[0], b'y' | b'i'))).await;
    assert!(folder.rows().keys().all(|key| key[0] != b'v'), "deliveries are left");
    let store = folder.open();
    assert_eq!(store.empty_trash(at(1_000)).await.unwrap(), 0);
    store.erase_expired_keys(at(7 + IDEMPOTENCY_RECORD_MILLIS));
    create_draft(&store, 1, 1, 8).await;
    close(store).await;
    folder.reopen_until(|| left().is_empty()).await;
}
