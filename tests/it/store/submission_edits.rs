//! Edits of submissions and their history.

use std::sync::Arc;

use forms::domain::submission::edit::EditedContent;
use forms::domain::submission::{EditInfo, Submission};
use forms::store::{CheckedEdit, NewSubmission, StepResult};

use super::submit_concurrently;
use super::{
    StoreFixture, at, edit_submission, find_submission, list_all, list_newest, list_trash, new_submission,
    published_form, restore_submission, submit, trash_submission, workspace,
};

pub(super) async fn an_edit_keeps_the_replaced_content_in_the_history(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let (text, metadata) = ("{ \"q1\" : \"a\" }", "{ \"source\":\"web\" }");
    let new = NewSubmission { metadata: Some(metadata), ..new_submission(form, text) };
    let StepResult::Done(id) = store.accept_submission(new, at(5)).await.unwrap() else {
        panic!("not stored")
    };
    let first = find_submission(&*store, form, id).await.unwrap();
    assert_eq!((&*first.answers, first.metadata.as_deref(), first.edits()), (text, Some(metadata), 0));
    let StepResult::Done(second) = edit_submission(&*store, form, id, 0, "{\"q1\":\"b\"}", 7).await else {
        panic!("not edited")
    };
    let edited = Some(EditInfo { at: at(7), count: 1 });
    let expected = Submission {
        answers: "{\"q1\":\"b\"}".into(),
        metadata: Some(r#"{"by":"hand"}"#.into()),
        edited,
        ..first.clone()
    };
    assert_eq!(second, expected);
    assert!(matches!(edit_submission(&*store, form, id, 0, "{}", 8).await, StepResult::Recheck));
    assert_eq!(list_all(&*store, form, 5).await, [id]);
    // Deletion keeps the history.
    assert!(matches!(trash_submission(&*store, form, id, 9).await, StepResult::Done(())));
    let trashed = Submission { deleted_at: Some(at(9)), ..second.clone() };
    assert_eq!(list_trash(&*store, form, 5).await, [trashed]);
    assert!(matches!(edit_submission(&*store, form, id, 1, "{}", 9).await, StepResult::Missing));
    assert_eq!(store.list_history(workspace(1).form(form).submission(id), None, 9).await.unwrap(), None);
    assert!(
        matches!(restore_submission(&*store, form, id, 10).await, StepResult::Done(back) if back == second)
    );
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(find_submission(&*store, form, id).await, Some(second));
    let history = store.list_history(workspace(1).form(form).submission(id), None, 9).await.unwrap().unwrap();
    assert_eq!((history.rows.len(), history.next), (1, None));
    let replaced = &history.rows[0];
    assert_eq!((&*replaced.answers, replaced.metadata.as_deref()), (text, Some(metadata)));
    assert_eq!((replaced.number, replaced.replaced_at), (0, at(7)));
    let without_metadata = CheckedEdit {
        submission: workspace(1).form(form).submission(id),
        seen_edits: 1,
        edit: EditedContent { answers: "{}".into(), metadata: None },
    };
    let elsewhere =
        CheckedEdit { submission: workspace(2).form(form).submission(id), ..without_metadata.clone() };
    let other = store.edit_submission(elsewhere, at(11)).await.unwrap();
    assert!(matches!(other, StepResult::Missing));
    let edited = store.edit_submission(without_metadata, at(11)).await.unwrap();
    assert!(matches!(edited, StepResult::Done(edited) if edited.metadata.is_none() && edited.edits() == 2));
    assert_eq!(store.list_history(workspace(2).form(form).submission(id), None, 9).await.unwrap(), None);
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 1);
}

pub(super) async fn of_concurrent_edits_only_those_of_the_current_content_are_stored(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let ids = submit_concurrently(&store, form, 8, 0).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let (store, id) = (Arc::clone(&store), ids[number % 8]);
        tasks.spawn(async move {
            edit_submission(&*store, form, id, 0, &format!("{{\"q1\":\"{number}\"}}"), 9).await
        });
    }
    let steps = tasks.join_all().await;
    assert_eq!(steps.iter().filter(|step| matches!(step, StepResult::Done(_))).count(), 8);
    assert_eq!(steps.iter().filter(|step| matches!(step, StepResult::Recheck)).count(), 56);
    for id in &ids {
        assert_eq!(find_submission(&*store, form, *id).await.unwrap().edits(), 1);
    }
    let mut expected = ids;
    expected.reverse();
    assert_eq!(list_all(&*store, form, 3).await, expected);
}

pub(super) async fn an_edit_may_be_larger_than_the_original_row(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let ids = submit_concurrently(&store, form, 100, 0).await;
    let text = |number: usize| format!("{{\"q1\":\"{}\"}}", "é".repeat(number * 300));
    for (number, id) in ids.iter().enumerate() {
        assert!(matches!(
            edit_submission(&*store, form, *id, 0, &text(number), 9).await,
            StepResult::Done(_)
        ));
    }
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = list_newest(&*store, workspace(1), form, before, 70).await.unwrap();
        before = page.next;
        seen.extend(page.rows);
        if before.is_none() {
            break;
        }
    }
    seen.reverse();
    assert_eq!(seen.len(), 100);
    for (number, (row, id)) in seen.iter().zip(&ids).enumerate() {
        assert_eq!((row.id, &*row.answers), (*id, &*text(number)));
    }
    // The rows are adjacent, but a page of them ends early because they are large.
    let large = format!("{{\"q1\":\"{}\"}}", "x".repeat(1_000_000));
    for id in &ids[..12] {
        assert!(matches!(edit_submission(&*store, form, *id, 1, &large, 9).await, StepResult::Done(_)));
    }
    let page = list_newest(&*store, workspace(1), form, Some(ids[12]), 1_000).await.unwrap();
    assert!(page.next.is_some() && page.rows.len() == 1, "{}", page.rows.len());
}

pub(super) async fn history_is_paged_newest_first(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let (id, other) =
        (submit(&*store, form, "{\"q1\":\"0\"}", 0).await, submit(&*store, form, "{}", 1).await);
    for number in 0..7 {
        let text = format!("{{\"q1\":\"{}\"}}", number + 1);
        assert!(matches!(
            edit_submission(&*store, form, id, number, &text, i64::from(number)).await,
            StepResult::Done(_)
        ));
    }
    assert!(matches!(edit_submission(&*store, form, other, 0, "{}", 9).await, StepResult::Done(_)));
    for limit in [1, 2, 3, 7, 8] {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = store
                .list_history(workspace(1).form(form).submission(id), before, limit)
                .await
                .unwrap()
                .unwrap();
            before = page.rows.last().map(|last| last.number);
            seen.extend(page.rows.into_iter().map(|row| (row.number, row.answers, row.replaced_at)));
            if page.next.is_none() {
                break;
            }
        }
        let expected = (0..7).rev().map(|number| {
            (number, format!("{{\"q1\":\"{number}\"}}").into_boxed_str(), at(i64::from(number)))
        });
        assert_eq!(seen, expected.collect::<Vec<_>>(), "pages of {limit}");
    }
}
