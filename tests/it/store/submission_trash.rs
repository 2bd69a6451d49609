//! Trashing, restoring, listing and purging of submissions.

use std::sync::Arc;

use forms::domain::form::admission::{AcceptingReason, Refusal};
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::Submission;
use forms::id::{FormId, SubmissionId};
use forms::store::{IdempotentOperation, NewSubmission, StepResult, Store};

use super::{
    StoreFixture, at, edit_submission, find_submission, idempotency_key, list_all, list_newest, list_trash,
    new_draft, new_submission, patch, published_form, purge_submission, restore_submission, submit,
    submit_concurrently, trash_form, trash_submission, update_form, workspace,
};

pub(super) async fn a_trashed_submission_is_not_found_until_it_is_restored(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let ids = [submit(&*store, form, "{\"q1\":\"a\"}", 0).await, submit(&*store, form, "{}", 1).await];
    let id = ids[0];
    let before = find_submission(&*store, form, id).await.unwrap();
    assert!(matches!(
        restore_submission(&*store, form, id, 2).await,
        StepResult::Refused(Refusal::NotInTrash)
    ));
    let elsewhere = store
        .trash_submission(workspace(2).form(form).submission(id), ExpectedRevision::Any, at(2))
        .await
        .unwrap();
    assert!(matches!(elsewhere, StepResult::Missing));
    assert!(matches!(trash_submission(&*store, form, id, 3).await, StepResult::Done(())));
    assert!(matches!(trash_submission(&*store, form, id, 4).await, StepResult::Missing));
    assert_eq!(find_submission(&*store, form, id).await, None);
    assert_eq!(list_all(&*store, form, 1).await, [ids[1]]);
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 1);
    let trashed = Submission { deleted_at: Some(at(3)), ..before.clone() };
    assert_eq!(list_trash(&*store, form, 1).await, [trashed]);
    assert_eq!(store.list_trashed_submissions(workspace(2).form(form), None, 5).await.unwrap(), None);
    let restore = |key, body| {
        let retry = idempotency_key(IdempotentOperation::RestoreSubmission(form, id), key, body);
        store.restore_submission(workspace(1).form(form).submission(id), retry, at(5))
    };
    assert!(matches!(restore(1, 5).await.unwrap(), StepResult::Done(back) if back == before));
    assert!(matches!(restore(1, 5).await.unwrap(), StepResult::Replayed(back) if back == before));
    assert!(matches!(restore(1, 6).await.unwrap(), StepResult::Refused(Refusal::KeyReused)));
    assert!(matches!(restore(2, 5).await.unwrap(), StepResult::Refused(Refusal::NotInTrash)));
    // The same idempotency key for another submission is another operation.
    trash_submission(&*store, form, ids[1], 5).await;
    let retry = idempotency_key(IdempotentOperation::RestoreSubmission(form, ids[1]), 1, 5);
    let second =
        store.restore_submission(workspace(1).form(form).submission(ids[1]), retry, at(5)).await.unwrap();
    assert!(matches!(second, StepResult::Done(back) if back.id == ids[1]));
    let other = store.restore_submission(workspace(2).form(form).submission(id), None, at(5)).await.unwrap();
    assert!(matches!(other, StepResult::Missing));
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(find_submission(&*store, form, id).await, Some(before));
    assert_eq!(list_all(&*store, form, 1).await, [ids[1], id]);
    assert_eq!(list_trash(&*store, form, 5).await, []);
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 2);
    let unknown = SubmissionId::from_bytes([9; 16]);
    assert!(matches!(trash_submission(&*store, form, unknown, 4).await, StepResult::Missing));
    assert!(matches!(restore_submission(&*store, form, unknown, 4).await, StepResult::Missing));
    assert!(matches!(purge_submission(&*store, form, unknown).await, StepResult::Missing));
}

pub(super) async fn a_purged_submission_cannot_be_restored(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut ids = submit_concurrently(&store, form, 5, 0).await;
    for edits in 0..300 {
        assert!(matches!(edit_submission(&*store, form, ids[1], edits, "{}", 1).await, StepResult::Done(_)));
    }
    assert!(matches!(trash_submission(&*store, form, ids[2], 2).await, StepResult::Done(())));
    let elsewhere = store
        .purge_submission(workspace(2).form(form).submission(ids[1]), ExpectedRevision::Any, at(9))
        .await
        .unwrap();
    assert!(matches!(elsewhere, StepResult::Missing));
    for id in &ids[..3] {
        assert!(matches!(purge_submission(&*store, form, *id).await, StepResult::Done(())));
        assert!(matches!(purge_submission(&*store, form, *id).await, StepResult::Missing));
        assert!(matches!(restore_submission(&*store, form, *id, 3).await, StepResult::Missing));
        assert_eq!(find_submission(&*store, form, *id).await, None);
    }
    assert_eq!(list_trash(&*store, form, 5).await, []);
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 2);
    store.close().await.unwrap();
    drop(store);
    ids.reverse();
    assert_eq!(list_all(&*fixture.open(), form, 2).await, ids[..2]);
}

pub(super) async fn one_group_can_submit_trash_and_restore(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut expected = submit_concurrently(&store, form, 30, 0).await;
    // All of this waits for the writer and becomes one group: 15 are trashed and restored, 15 only trashed.
    let mut tasks = tokio::task::JoinSet::new();
    for (number, id) in expected.clone().into_iter().enumerate() {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (one, two) = tokio::join!(trash_submission(&*store, form, id, 5), async {
                if number < 15 { Some(restore_submission(&*store, form, id, 6).await) } else { None }
            });
            assert!(
                matches!(one, StepResult::Done(())) && matches!(two, None | Some(StepResult::Done(_))),
                "{one:?} {two:?}"
            );
            submit(&*store, form, "{}", 7).await
        });
    }
    let new = tasks.join_all().await;
    expected.truncate(15);
    expected.extend(new);
    expected.sort_unstable();
    expected.reverse();
    for limit in [1, 7, 100] {
        assert_eq!(list_all(&*store, form, limit).await, expected, "pages of {limit}");
    }
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 45);
    assert_eq!(list_trash(&*store, form, 4).await.len(), 15);
}

/// Runs edits of all `ids`, which share a row, and then `last`, in one group.
async fn after_edits<T: Send + 'static>(
    store: &Arc<dyn Store>,
    form: FormId,
    ids: &[SubmissionId],
    last: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut tasks = tokio::task::JoinSet::new();
    for id in ids.iter().copied() {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            assert!(matches!(edit_submission(&*store, form, id, 0, "{}", 12).await, StepResult::Done(_)));
        });
    }
    let last = tokio::spawn(last);
    tasks.join_all().await;
    last.await.unwrap()
}

pub(super) async fn a_submission_after_a_restored_one_sorts_after_it(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut ids = submit_concurrently(&store, form, 20, 0).await;
    let newest = ids[19];
    assert!(matches!(trash_submission(&*store, form, newest, 11).await, StepResult::Done(())));
    // The writer still has the row that was the last one, but the next submission must not be added to it.
    let one = Arc::clone(&store);
    let restore_and_submit = async move {
        let (back, later) =
            tokio::join!(restore_submission(&*one, form, newest, 12), submit(&*one, form, "{}", 12));
        assert!(matches!(back, StepResult::Done(_)), "{back:?}");
        later
    };
    ids.push(after_edits(&store, form, &ids[2..18], restore_and_submit).await);
    ids.reverse();
    assert_eq!(list_all(&*store, form, 3).await, ids);
}

pub(super) async fn a_submission_after_the_clock_repeats_sorts_last(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut ids = submit_concurrently(&store, form, 80, 100_000).await;
    for id in ids.split_off(40) {
        assert!(matches!(trash_submission(&*store, form, id, 100_100).await, StepResult::Done(())));
    }
    // The newest ones leave free space in a row after the one that is last now.
    ids.push(submit(&*store, form, "{}", 0).await);
    ids.push(submit(&*store, form, "{}", 100_015).await);
    assert!(ids[39] < ids[41]);
    let one = Arc::clone(&store);
    let later = async move { submit(&*one, form, "{}", 100_200).await };
    ids.push(after_edits(&store, form, &ids[2..38], later).await);
    ids.sort_unstable();
    ids.reverse();
    assert_eq!(list_all(&*store, form, 7).await, ids);
}

pub(super) async fn a_submission_id_is_never_reused(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    // One row spans some milliseconds; its last submission is trashed, and the clock returns to a time within the row.
    let ids = submit_concurrently(&store, form, 40, 100_000).await;
    assert!(matches!(trash_submission(&*store, form, ids[39], 100_020).await, StepResult::Done(())));
    submit(&*store, form, "{}", 0).await;
    let again = submit_concurrently(&store, form, 40, 100_000).await;
    assert!(again.iter().all(|id| !ids.contains(id)));
    assert!(matches!(restore_submission(&*store, form, ids[39], 100_030).await, StepResult::Done(_)));
    let seen = list_all(&*store, form, 9).await;
    assert_eq!(seen.len(), 81);
    assert!(seen.is_sorted_by(|one, next| one > next));
}

pub(super) async fn the_response_limit_is_exact_during_concurrent_deletes_and_restores(
    fixture: &impl StoreFixture,
) {
    const MAX_RESPONSES: usize = 10;
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let limited = patch(&format!(r#"{{"settings":{{"max_responses":{MAX_RESPONSES}}}}}"#));
    update_form(&*store, workspace(1), form, limited, ExpectedRevision::Any, at(1)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (mut own, mut refused) = (Vec::new(), 0);
            for round in 0..12 {
                let new = NewSubmission { checked_revision: 3, ..new_submission(form, "{}") };
                match store.accept_submission(new, at(2)).await.unwrap() {
                    StepResult::Done(id) => own.push(id),
                    StepResult::Refused(Refusal::NotAccepting { reason: AcceptingReason::Full, .. }) => {
                        refused += 1
                    }
                    other => panic!("{other:?}"),
                }
                if let Some(id) = own.first().copied().filter(|_| (number + round) % 3 > 0) {
                    let removed = trash_submission(&*store, form, id, 3).await;
                    assert!(matches!(removed, StepResult::Done(()) | StepResult::Missing), "{removed:?}");
                    match restore_submission(&*store, form, id, 4).await {
                        StepResult::Done(_) => {}
                        StepResult::Refused(Refusal::NotAccepting {
                            reason: AcceptingReason::Full, ..
                        }) => refused += 1,
                        other => panic!("{other:?}"),
                    }
                }
                let count = store.count_submissions(workspace(1).form(form)).await.unwrap();
                assert!(count <= MAX_RESPONSES as u64, "{count}");
            }
            refused
        });
    }
    let refused: usize = tasks.join_all().await.into_iter().sum();
    assert!(refused > 0, "no submission exceeded the limit");
    let (live, count) =
        (list_all(&*store, form, 50).await, store.count_submissions(workspace(1).form(form)).await.unwrap());
    assert_eq!(live.len() as u64, count);
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    // No submission is both live and trashed, and restores succeed up to the limit.
    let trashed = list_trash(&*store, form, 50).await;
    assert!(trashed.iter().all(|submission| !live.contains(&submission.id)));
    let free = MAX_RESPONSES - live.len();
    for (index, submission) in trashed.iter().enumerate().take(free + 2) {
        let step = restore_submission(&*store, form, submission.id, 5).await;
        assert_eq!(matches!(step, StepResult::Done(_)), index < free, "{step:?}");
    }
}

pub(super) async fn pages_contain_every_unchanged_submission_during_concurrent_deletes(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut ids = Vec::new();
    for round in 0..6 {
        ids.extend(submit_concurrently(&store, form, 60, round).await);
    }
    let (changing, kept): (Vec<_>, Vec<_>) = ids.iter().partition(|id| id.to_bytes()[15] % 2 == 0);
    assert!(changing.len() > 50 && kept.len() > 50);
    let mut tasks = tokio::task::JoinSet::new();
    for (number, id) in changing.into_iter().enumerate() {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            match number % 3 {
                0 => drop(purge_submission(&*store, form, id).await),
                1 => drop(trash_submission(&*store, form, id, 9).await),
                _ => {
                    drop(trash_submission(&*store, form, id, 9).await);
                    drop(restore_submission(&*store, form, id, 10).await);
                }
            }
            submit(&*store, form, "{}", 20).await
        });
    }
    for (number, id) in kept.iter().copied().enumerate().filter(|(number, _)| number % 4 == 0) {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let text = format!("{{\"q1\":\"{}\"}}", "x".repeat(number * 20));
            assert!(matches!(edit_submission(&*store, form, id, 0, &text, 11).await, StepResult::Done(_)));
            id
        });
    }
    let mut rounds = 0;
    while !tasks.is_empty() {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = list_newest(&*store, workspace(1), form, before, 25).await.unwrap();
            before = page.next;
            seen.extend(page.rows.into_iter().map(|row| row.id));
            tasks.join_next().await;
            if before.is_none() {
                break;
            }
        }
        assert!(seen.is_sorted_by(|one, next| one > next), "a submission appears twice");
        assert!(
            kept.iter().all(|id| seen.binary_search_by(|seen| id.cmp(seen)).is_ok()),
            "a submission is missing"
        );
        rounds += 1;
    }
    assert!(rounds > 2, "{rounds}");
}

pub(super) async fn trashed_submissions_are_erased_by_time_of_deletion(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let forms = [published_form(&*store, 11).await, published_form(&*store, 12).await];
    let mut ids = Vec::new();
    for form in forms {
        ids.push(submit_concurrently(&store, form, 70, 0).await);
    }
    for (form, ids) in forms.into_iter().zip(&ids) {
        for (number, id) in ids.iter().enumerate() {
            if number % 2 == 0 {
                assert!(matches!(edit_submission(&*store, form, *id, 0, "{}", 1).await, StepResult::Done(_)));
            }
            assert!(matches!(
                trash_submission(&*store, form, *id, number as i64).await,
                StepResult::Done(())
            ));
        }
        // After a restore and a second deletion the time of the second counts.
        for id in &ids[..3] {
            assert!(matches!(restore_submission(&*store, form, *id, 80).await, StepResult::Done(_)));
        }
        assert!(matches!(trash_submission(&*store, form, ids[1], 81).await, StepResult::Done(())));
    }
    assert_eq!(store.empty_trash(at(60)).await.unwrap(), 2 * (60 - 3));
    assert_eq!(store.empty_trash(at(60)).await.unwrap(), 0);
    for (form, ids) in forms.into_iter().zip(&ids) {
        let left: Vec<_> = list_trash(&*store, form, 9).await.into_iter().map(|left| left.id).collect();
        let expected: Vec<_> = ids[60..].iter().rev().chain([&ids[1]]).copied().collect();
        assert_eq!(left, expected);
        assert_eq!(list_all(&*store, form, 9).await, [ids[2], ids[0]]);
        assert!(matches!(restore_submission(&*store, form, ids[30], 90).await, StepResult::Missing));
    }
    // Of a purged form only the trash entries are left to erase.
    let purged = store.purge_form(workspace(1).form(forms[0]), ExpectedRevision::Any).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    let gone = async {
        while matches!(store.insert_form(new_draft(1, 11, 0)).await.unwrap(), StepResult::Recheck) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), gone).await.unwrap();
    assert_eq!(list_trash(&*store, forms[0], 9).await, []);
    assert_eq!(store.empty_trash(at(1_000)).await.unwrap(), 11);
    assert_eq!(list_trash(&*store, forms[1], 9).await, []);
}

pub(super) async fn the_trash_of_a_form_is_trashed_and_restored_with_it(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let ids = submit_concurrently(&store, form, 4, 0).await;
    assert!(matches!(trash_submission(&*store, form, ids[1], 5).await, StepResult::Done(())));
    let before = list_trash(&*store, form, 9).await;
    trash_form(&*store, form, 6).await;
    assert_eq!(store.list_trashed_submissions(workspace(1).form(form), None, 9).await.unwrap(), None);
    for step in
        [trash_submission(&*store, form, ids[0], 7).await, purge_submission(&*store, form, ids[0]).await]
    {
        assert!(matches!(step, StepResult::Missing));
    }
    assert!(matches!(restore_submission(&*store, form, ids[1], 7).await, StepResult::Missing));
    assert!(matches!(edit_submission(&*store, form, ids[0], 0, "{}", 7).await, StepResult::Missing));
    let back = store.restore_form(workspace(1).form(form), None, at(8)).await.unwrap();
    assert!(matches!(back, StepResult::Done(_)));
    assert_eq!(list_trash(&*store, form, 9).await, before);
    assert_eq!(list_all(&*store, form, 9).await, [ids[3], ids[2], ids[0]]);
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 3);
}
