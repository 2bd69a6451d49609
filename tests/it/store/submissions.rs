//! Submissions: stored byte for byte, edited, trashed and restored.

use forms::domain::submission::FoundIn;
use forms::domain::submission::filter::SubmissionQuery;
use forms::id::{FormId, SubmissionId};
use forms::store::Store;
use futures_util::future::join_all;

use super::{
    COMPLETED, StoreFixture, all_pages, count, current, definition, done, edit_submission, find_submission,
    form_id, list_all, list_newest, list_trash, missing, new_form, published_form, purge_submission,
    restore_form, restore_submission, submit, submit_concurrently, trash_form, trash_submission, workspace,
};

pub(super) async fn answers_and_definitions_are_stored_byte_for_byte(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let mut sent = Vec::new();
    for length in [0, 4_050, 4_096, 4_097, 8_191, 60_000, 900_000] {
        let text = format!("{{\"q1\":\"{}\"}}", "é".repeat(length / 2));
        sent.push((submit(&*store, form, &text, 0).await, text));
    }
    let text = "{ \"q1\" : \"caf\\u00e9 😀\", \"n\": 1.10 }".to_owned();
    sent.push((submit(&*store, form, &text, 0).await, text));
    let questions: Vec<_> = (0..500)
        .map(|number| {
            format!(r#"{{"type":"short_text","title":"{}","description":"{number}"}}"#, "t".repeat(300))
        })
        .collect();
    let big = definition(&format!(r#"{{"title":"Big","questions":[{}]}}"#, questions.join(",")));
    store.insert_form(new_form(1, 12, big, 0)).await.unwrap();
    let store = fixture.reopen(store).await;
    for (id, text) in &sent {
        assert_eq!(*find_submission(&*store, form, *id).await.unwrap().answers, **text);
    }
    let page = list_newest(&*store, form, None, 100).await.unwrap();
    let listed: Vec<_> =
        page.rows.into_iter().rev().map(|found| (found.id, found.answers.into_string())).collect();
    assert_eq!(listed, sent);
    let found = current(&*store, workspace(1), form_id(12)).await.unwrap();
    assert_eq!(found.version.questions.len(), 500);
    assert_eq!(found.version.questions[499].description.as_deref(), Some("499"));
}

pub(super) async fn an_edit_may_be_larger_than_the_original_row(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let ids = submit_concurrently(&*store, form, 100, 0).await;
    let text = |number: usize| format!("{{\"q1\":\"{}\"}}", "é".repeat(number * 300));
    for (number, id) in ids.iter().enumerate() {
        done(edit_submission(&*store, form, *id, 0, &text(number), 9).await);
    }
    let store = fixture.reopen(store).await;
    let mut seen = all_pages(async |before| list_newest(&*store, form, before, 70).await.unwrap()).await;
    seen.reverse();
    assert_eq!(seen.len(), 100);
    for (number, (row, id)) in seen.iter().zip(&ids).enumerate() {
        assert_eq!((row.id, &*row.answers), (*id, &*text(number)));
    }
}

pub(super) async fn one_group_can_submit_trash_and_restore(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let mut expected = submit_concurrently(&*store, form, 30, 0).await;
    // All of this waits for the writer and becomes one group: 15 are trashed and restored, 15 only trashed.
    let change = async |(number, id)| {
        let restore = async || done(restore_submission(&*store, form, id, 6).await);
        let restored = async { if number < 15 { Some(restore().await) } else { None } };
        let (trashed, _) = tokio::join!(trash_submission(&*store, form, id, 5), restored);
        done(trashed);
        submit(&*store, form, "{}", 7).await
    };
    let new = join_all(expected.clone().into_iter().enumerate().map(change)).await;
    expected.truncate(15);
    expected.extend(new);
    expected.sort_unstable();
    expected.reverse();
    for limit in [1, 7, 100] {
        assert_eq!(list_all(&*store, form, limit).await, expected, "pages of {limit}");
    }
    assert_eq!(count(&*store, form).await, 45);
    assert_eq!(list_trash(&*store, form, 4).await.len(), 15);
}

/// Edits all `ids`, which share a row, restores others, and submits, in one group.
async fn submit_after(
    store: &dyn Store,
    form: FormId,
    edited: &[SubmissionId],
    restored: &[SubmissionId],
    millis: i64,
) -> SubmissionId {
    let edits = join_all(edited.iter().map(|id| edit_submission(store, form, *id, 0, "{}", 12)));
    let restores = join_all(restored.iter().map(|id| restore_submission(store, form, *id, 12)));
    let (edits, restores, id) = tokio::join!(edits, restores, submit(store, form, "{}", millis));
    edits.into_iter().chain(restores).for_each(|step| drop(done(step)));
    id
}

pub(super) async fn a_submission_after_a_restored_one_sorts_after_it(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let mut ids = submit_concurrently(&*store, form, 20, 0).await;
    let newest = ids[19];
    done(trash_submission(&*store, form, newest, 11).await);
    // The writer still has the row that was the last one, but the next submission must not be added to it.
    ids.push(submit_after(&*store, form, &ids[2..18], &[newest], 12).await);
    ids.reverse();
    assert_eq!(list_all(&*store, form, 3).await, ids);
}

pub(super) async fn a_submission_after_the_clock_repeats_sorts_last(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let mut ids = submit_concurrently(&*store, form, 80, 100_000).await;
    for id in ids.split_off(40) {
        done(trash_submission(&*store, form, id, 100_100).await);
    }
    // The newest ones leave free space in a row after the one that is last now.
    ids.push(submit(&*store, form, "{}", 0).await);
    ids.push(submit(&*store, form, "{}", 100_015).await);
    assert!(ids[39] < ids[41]);
    ids.push(submit_after(&*store, form, &ids[2..38], &[], 100_200).await);
    ids.sort_unstable();
    ids.reverse();
    assert_eq!(list_all(&*store, form, 7).await, ids);
}

pub(super) async fn a_submission_id_is_never_reused(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    // One row spans some milliseconds; its last submission is trashed, and the clock returns to a time within the row.
    let ids = submit_concurrently(&*store, form, 40, 100_000).await;
    done(trash_submission(&*store, form, ids[39], 100_020).await);
    submit(&*store, form, "{}", 0).await;
    let again = submit_concurrently(&*store, form, 40, 100_000).await;
    assert!(again.iter().all(|id| !ids.contains(id)));
    done(restore_submission(&*store, form, ids[39], 100_030).await);
    let seen = list_all(&*store, form, 9).await;
    assert_eq!(seen.len(), 81);
    assert!(seen.is_sorted_by(|one, next| one > next));
}

pub(super) async fn many_edits_of_a_submission_hide_no_other_from_a_search(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let ids = submit_concurrently(&*store, form, 2, 0).await;
    for (id, edits) in [(ids[0], 7), (ids[1], 2)] {
        for seen in 0..edits {
            let text = if seen + 1 == edits { "{}" } else { r#"{"q1":"ann"}"# };
            done(edit_submission(&*store, form, id, seen, text, 5).await);
        }
    }
    let query = SubmissionQuery { text: Some("ANN".to_owned()), ..SubmissionQuery::default() };
    let found = store.find_traces(workspace(1).form(form), query, 2).await.unwrap().unwrap().unwrap();
    assert_eq!(found, [(ids[0], FoundIn::History), (ids[1], FoundIn::History)]);
}

pub(super) async fn the_trash_of_a_form_is_trashed_and_restored_with_it(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let ids = submit_concurrently(&*store, form, 4, 0).await;
    done(trash_submission(&*store, form, ids[1], 5).await);
    let before = list_trash(&*store, form, 9).await;
    trash_form(&*store, form, 6).await;
    let listed = store.list_trashed_submissions(workspace(1).form(form), COMPLETED, None, 9).await.unwrap();
    assert_eq!(listed, None);
    missing(trash_submission(&*store, form, ids[0], 7).await);
    missing(restore_submission(&*store, form, ids[1], 7).await);
    missing(edit_submission(&*store, form, ids[0], 0, "{}", 7).await);
    done(purge_submission(&*store, form, ids[0]).await);
    done(restore_form(&*store, form, 8).await);
    assert_eq!(list_trash(&*store, form, 9).await, before);
    assert_eq!(list_all(&*store, form, 9).await, [ids[3], ids[2]]);
    assert_eq!(count(&*store, form).await, 2);
}
