//! Submissions in the trash, out of it, and gone for good.

use std::sync::Arc;

use forms::domain::form::admission::{AcceptingReason, Refusal};
use forms::domain::revision::ExpectedRevision;
use forms::domain::submission::Submission;
use forms::id::{FormId, SubmissionId};
use forms::store::{IdempotentOperation, NewSubmission, StepResult, Store};

use super::{
    Bench, all, answers, at, change, draft, edit, erase, found, in_trash, newest, published, put_back,
    remove, retry, submit, submit_together, trash, update_form, workspace,
};

pub(super) async fn a_trashed_submission_is_gone_from_sight_and_comes_back(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let ids = [submit(&*store, form, "{\"q1\":\"a\"}", 0).await, submit(&*store, form, "{}", 1).await];
    let id = ids[0];
    let before = found(&*store, form, id).await.unwrap();
    assert!(matches!(put_back(&*store, form, id, 2).await, StepResult::Refused(Refusal::NotInTrash)));
    let elsewhere =
        store.trash_submission(workspace(2), form, id, ExpectedRevision::Any, at(2)).await.unwrap();
    assert!(matches!(elsewhere, StepResult::Missing));
    assert!(matches!(remove(&*store, form, id, 3).await, StepResult::Done(())));
    assert!(matches!(remove(&*store, form, id, 4).await, StepResult::Missing));
    assert_eq!(found(&*store, form, id).await, None);
    assert_eq!(all(&*store, form, 1).await, [ids[1]]);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 1);
    let trashed = Submission { deleted_at: Some(at(3)), ..before.clone() };
    assert_eq!(in_trash(&*store, form, 1).await, [trashed]);
    assert_eq!(store.list_trashed_submissions(workspace(2), form, None, 5).await.unwrap(), None);
    let restore = |key, body| {
        let retry = retry(IdempotentOperation::RestoreSubmission(form, id), key, body);
        store.restore_submission(workspace(1), form, id, retry, at(5))
    };
    assert!(matches!(restore(1, 5).await.unwrap(), StepResult::Done(back) if back == before));
    assert!(matches!(restore(1, 5).await.unwrap(), StepResult::Replayed(back) if back == before));
    assert!(matches!(restore(1, 6).await.unwrap(), StepResult::Refused(Refusal::KeyReused)));
    assert!(matches!(restore(2, 5).await.unwrap(), StepResult::Refused(Refusal::NotInTrash))); // The same key for another submission is another operation.
    remove(&*store, form, ids[1], 5).await;
    let retry = retry(IdempotentOperation::RestoreSubmission(form, ids[1]), 1, 5);
    let second = store.restore_submission(workspace(1), form, ids[1], retry, at(5)).await.unwrap();
    assert!(matches!(second, StepResult::Done(back) if back.id == ids[1]));
    let other = store.restore_submission(workspace(2), form, id, None, at(5)).await.unwrap();
    assert!(matches!(other, StepResult::Missing));
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(found(&*store, form, id).await, Some(before));
    assert_eq!(all(&*store, form, 1).await, [ids[1], id]);
    assert_eq!(in_trash(&*store, form, 5).await, []);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 2);
    let unknown = SubmissionId::from_bytes([9; 16]);
    assert!(matches!(remove(&*store, form, unknown, 4).await, StepResult::Missing));
    assert!(matches!(put_back(&*store, form, unknown, 4).await, StepResult::Missing));
    assert!(matches!(erase(&*store, form, unknown).await, StepResult::Missing));
}

pub(super) async fn a_purged_submission_is_gone_for_good(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut ids = submit_together(&store, form, 5, 0).await;
    for edits in 0..300 {
        assert!(matches!(edit(&*store, form, ids[1], edits, "{}", 1).await, StepResult::Done(_)));
    }
    assert!(matches!(remove(&*store, form, ids[2], 2).await, StepResult::Done(())));
    let elsewhere = store.purge_submission(workspace(2), form, ids[1], ExpectedRevision::Any).await.unwrap();
    assert!(matches!(elsewhere, StepResult::Missing));
    for id in &ids[..3] {
        assert!(matches!(erase(&*store, form, *id).await, StepResult::Done(())));
        assert!(matches!(erase(&*store, form, *id).await, StepResult::Missing));
        assert!(matches!(put_back(&*store, form, *id, 3).await, StepResult::Missing));
        assert_eq!(found(&*store, form, *id).await, None);
    }
    assert_eq!(in_trash(&*store, form, 5).await, []);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 2);
    store.close().await.unwrap();
    drop(store);
    ids.reverse();
    assert_eq!(all(&*bench.open(), form, 2).await, ids[..2]);
}

pub(super) async fn one_group_may_hold_the_whole_life_of_a_submission(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut expected = submit_together(&store, form, 30, 0).await; // All of this waits for the writer together: the first half comes and goes, the second stays away.
    let mut tasks = tokio::task::JoinSet::new();
    for (number, id) in expected.clone().into_iter().enumerate() {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (one, two) = tokio::join!(remove(&*store, form, id, 5), async {
                if number < 15 { Some(put_back(&*store, form, id, 6).await) } else { None }
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
        assert_eq!(all(&*store, form, limit).await, expected, "pages of {limit}");
    }
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 45);
    assert_eq!(in_trash(&*store, form, 4).await.len(), 15);
}

/// In one group: edits that touch the row of all `ids`, then what `last` does.
async fn behind_edits<T: Send + 'static>(
    store: &Arc<dyn Store>,
    form: FormId,
    ids: &[SubmissionId],
    last: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut tasks = tokio::task::JoinSet::new();
    for id in ids.iter().copied() {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            assert!(matches!(edit(&*store, form, id, 0, "{}", 12).await, StepResult::Done(_)));
        });
    }
    let last = tokio::spawn(last);
    tasks.join_all().await;
    last.await.unwrap()
}

pub(super) async fn what_comes_after_a_submission_that_is_back_stands_behind_it(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut ids = submit_together(&store, form, 20, 0).await;
    let newest = ids[19];
    assert!(matches!(remove(&*store, form, newest, 11).await, StepResult::Done(()))); // The row that was the last one is at hand when the next submission comes, and yet is not its place.
    let one = Arc::clone(&store);
    let back_and_one_more = async move {
        let (back, later) = tokio::join!(put_back(&*one, form, newest, 12), submit(&*one, form, "{}", 12));
        assert!(matches!(back, StepResult::Done(_)), "{back:?}");
        later
    };
    ids.push(behind_edits(&store, form, &ids[2..18], back_and_one_more).await);
    ids.reverse();
    assert_eq!(all(&*store, form, 3).await, ids);
}

pub(super) async fn what_comes_after_times_that_came_again_stands_behind_them(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut ids = submit_together(&store, form, 80, 100_000).await;
    for id in ids.split_off(40) {
        assert!(matches!(remove(&*store, form, id, 100_100).await, StepResult::Done(())));
    } // Where the newest ones were there is room, in a row behind the one that was the last.
    ids.push(submit(&*store, form, "{}", 0).await);
    ids.push(submit(&*store, form, "{}", 100_015).await);
    assert!(ids[39] < ids[41]);
    let one = Arc::clone(&store);
    let later = async move { submit(&*one, form, "{}", 100_200).await };
    ids.push(behind_edits(&store, form, &ids[2..38], later).await);
    ids.sort_unstable();
    ids.reverse();
    assert_eq!(all(&*store, form, 7).await, ids);
}

pub(super) async fn an_id_that_was_given_is_not_given_again(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await; // One row over some milliseconds; its last submission goes, and time comes back to within the row.
    let ids = submit_together(&store, form, 40, 100_000).await;
    assert!(matches!(remove(&*store, form, ids[39], 100_020).await, StepResult::Done(())));
    submit(&*store, form, "{}", 0).await;
    let again = submit_together(&store, form, 40, 100_000).await;
    assert!(again.iter().all(|id| !ids.contains(id)));
    assert!(matches!(put_back(&*store, form, ids[39], 100_030).await, StepResult::Done(_)));
    let seen = all(&*store, form, 9).await;
    assert_eq!(seen.len(), 81);
    assert!(seen.is_sorted_by(|one, next| one > next));
}

pub(super) async fn capacity_is_exact_while_many_come_go_and_return(bench: &impl Bench) {
    const SEATS: usize = 10;
    let store = bench.open();
    let form = published(&*store, 11).await;
    let limited = change(&format!(r#"{{"settings":{{"max_responses":{SEATS}}}}}"#));
    update_form(&*store, workspace(1), form, limited, ExpectedRevision::Any, at(1)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (mut mine, mut refused) = (Vec::new(), 0);
            for round in 0..12 {
                let new = NewSubmission { checked_revision: 3, ..answers(form, "{}") };
                match store.accept_submission(workspace(1), new, at(2)).await.unwrap() {
                    StepResult::Done(id) => mine.push(id),
                    StepResult::Refused(Refusal::NotAccepting { reason: AcceptingReason::Full, .. }) => {
                        refused += 1
                    }
                    other => panic!("{other:?}"),
                }
                if let Some(id) = mine.first().copied().filter(|_| (number + round) % 3 > 0) {
                    let removed = remove(&*store, form, id, 3).await;
                    assert!(matches!(removed, StepResult::Done(()) | StepResult::Missing), "{removed:?}");
                    match put_back(&*store, form, id, 4).await {
                        StepResult::Done(_) => {}
                        StepResult::Refused(Refusal::NotAccepting {
                            reason: AcceptingReason::Full, ..
                        }) => refused += 1,
                        other => panic!("{other:?}"),
                    }
                }
                let count = store.count_submissions(workspace(1), form).await.unwrap();
                assert!(count <= SEATS as u64, "{count}");
            }
            refused
        });
    }
    let refused: usize = tasks.join_all().await.into_iter().sum();
    assert!(refused > 0, "no request exceeded the capacity");
    let (live, count) =
        (all(&*store, form, 50).await, store.count_submissions(workspace(1), form).await.unwrap());
    assert_eq!(live.len() as u64, count);
    store.close().await.unwrap();
    drop(store);
    let store = bench.open(); // Each is in one place; freed capacity goes to the first request, and to no other.
    let trashed = in_trash(&*store, form, 50).await;
    assert!(trashed.iter().all(|submission| !live.contains(&submission.id)));
    let full = SEATS - live.len();
    for (place, submission) in trashed.iter().enumerate().take(full + 2) {
        let step = put_back(&*store, form, submission.id, 5).await;
        assert_eq!(matches!(step, StepResult::Done(_)), place < full, "{step:?}");
    }
}

pub(super) async fn pages_have_all_that_stays_while_others_delete(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut ids = Vec::new();
    for round in 0..6 {
        ids.extend(submit_together(&store, form, 60, round).await);
    }
    let (going, staying): (Vec<_>, Vec<_>) = ids.iter().partition(|id| id.to_bytes()[15] % 2 == 0);
    assert!(going.len() > 50 && staying.len() > 50);
    let mut tasks = tokio::task::JoinSet::new();
    for (number, id) in going.into_iter().enumerate() {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            match number % 3 {
                0 => drop(erase(&*store, form, id).await),
                1 => drop(remove(&*store, form, id, 9).await),
                _ => {
                    drop(remove(&*store, form, id, 9).await);
                    drop(put_back(&*store, form, id, 10).await);
                }
            }
            submit(&*store, form, "{}", 20).await
        });
    }
    for (number, id) in staying.iter().copied().enumerate().filter(|(number, _)| number % 4 == 0) {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let text = format!("{{\"q1\":\"{}\"}}", "x".repeat(number * 20));
            assert!(matches!(edit(&*store, form, id, 0, &text, 11).await, StepResult::Done(_)));
            id
        });
    }
    let mut rounds = 0;
    while !tasks.is_empty() {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = newest(&*store, workspace(1), form, before, 25).await.unwrap();
            before = page.next;
            seen.extend(page.rows.into_iter().map(|row| row.id));
            tasks.join_next().await;
            if before.is_none() {
                break;
            }
        }
        assert!(seen.is_sorted_by(|one, next| one > next), "none is there twice");
        assert!(
            staying.iter().all(|id| seen.binary_search_by(|seen| id.cmp(seen)).is_ok()),
            "none is left out"
        );
        rounds += 1;
    }
    assert!(rounds > 2, "{rounds}");
}

pub(super) async fn trashed_submissions_are_swept_by_the_time_of_deletion(bench: &impl Bench) {
    let store = bench.open();
    let forms = [published(&*store, 11).await, published(&*store, 12).await];
    let mut ids = Vec::new();
    for form in forms {
        ids.push(submit_together(&store, form, 70, 0).await);
    }
    for (form, ids) in forms.into_iter().zip(&ids) {
        for (number, id) in ids.iter().enumerate() {
            if number % 2 == 0 {
                assert!(matches!(edit(&*store, form, *id, 0, "{}", 1).await, StepResult::Done(_)));
            }
            assert!(matches!(remove(&*store, form, *id, number as i64).await, StepResult::Done(())));
        } // Back, and deleted anew: it is the last time that counts.
        for id in &ids[..3] {
            assert!(matches!(put_back(&*store, form, *id, 80).await, StepResult::Done(_)));
        }
        assert!(matches!(remove(&*store, form, ids[1], 81).await, StepResult::Done(())));
    }
    assert_eq!(store.empty_trash(at(60)).await.unwrap(), 2 * (60 - 3));
    assert_eq!(store.empty_trash(at(60)).await.unwrap(), 0);
    for (form, ids) in forms.into_iter().zip(&ids) {
        let left: Vec<_> = in_trash(&*store, form, 9).await.into_iter().map(|left| left.id).collect();
        let expected: Vec<_> = ids[60..].iter().rev().chain([&ids[1]]).copied().collect();
        assert_eq!(left, expected);
        assert_eq!(all(&*store, form, 9).await, [ids[2], ids[0]]);
        assert!(matches!(put_back(&*store, form, ids[30], 90).await, StepResult::Missing));
    } // What is swept of a form that is gone is no more than a note.
    let purged = store.purge_form(workspace(1), forms[0], ExpectedRevision::Any).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    let gone = async {
        while matches!(store.insert_form(draft(1, 11, 0)).await.unwrap(), StepResult::Recheck) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), gone).await.unwrap();
    assert_eq!(in_trash(&*store, forms[0], 9).await, []);
    assert_eq!(store.empty_trash(at(1_000)).await.unwrap(), 11);
    assert_eq!(in_trash(&*store, forms[1], 9).await, []);
}

pub(super) async fn a_forms_trash_goes_and_comes_with_it(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let ids = submit_together(&store, form, 4, 0).await;
    assert!(matches!(remove(&*store, form, ids[1], 5).await, StepResult::Done(())));
    let before = in_trash(&*store, form, 9).await;
    trash(&*store, form, 6).await;
    assert_eq!(store.list_trashed_submissions(workspace(1), form, None, 9).await.unwrap(), None);
    for step in [remove(&*store, form, ids[0], 7).await, erase(&*store, form, ids[0]).await] {
        assert!(matches!(step, StepResult::Missing));
    }
    assert!(matches!(put_back(&*store, form, ids[1], 7).await, StepResult::Missing));
    assert!(matches!(edit(&*store, form, ids[0], 0, "{}", 7).await, StepResult::Missing));
    let back = store.restore_form(workspace(1), form, None, at(8)).await.unwrap();
    assert!(matches!(back, StepResult::Done(_)));
    assert_eq!(in_trash(&*store, form, 9).await, before);
    assert_eq!(all(&*store, form, 9).await, [ids[3], ids[2], ids[0]]);
    assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 3);
}
