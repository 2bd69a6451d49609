//! Reading submissions, individually and by pages.

use forms::id::SubmissionId;
use forms::store::{StepResult, SubmissionRows};

use super::{
    StoreFixture, at, current, definition, form_id, list_all, list_newest, list_trash, new_form,
    published_form, submit, submit_concurrently, trash_submission, workspace,
};

pub(super) async fn a_submission_is_stored_byte_for_byte(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let text = "{ \"q1\" : \"caf\\u00e9 😀\", \"n\": 1.10 }";
    let id = submit(&*store, form, text, 123).await;
    for round in 0..2 {
        let found = store.find_submission(workspace(1).form(form).submission(id)).await.unwrap().unwrap();
        assert_eq!(
            (&*found.answers, found.id, found.form, found.form_version),
            (text, id, form, 1),
            "round {round}"
        );
        assert_eq!(found.submitted_at(), at(123));
        let page = list_newest(&*store, workspace(1), form, None, 10).await.unwrap();
        assert_eq!(page, SubmissionRows { rows: vec![found], next: None });
    }
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 1);
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(
        &*store.find_submission(workspace(1).form(form).submission(id)).await.unwrap().unwrap().answers,
        text
    );
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 1);
}

pub(super) async fn large_answers_and_definitions_are_stored(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut sent = Vec::new();
    for length in [0, 4_050, 4_096, 4_097, 8_191, 60_000, 900_000] {
        let text = format!("{{\"q1\":\"{}\"}}", "é".repeat(length / 2));
        sent.push((submit(&*store, form, &text, 0).await, text));
    }
    let questions: Vec<_> = (0..500)
        .map(|number| {
            format!(r#"{{"type":"short_text","title":"{}","description":"{number}"}}"#, "t".repeat(300))
        })
        .collect();
    let big = definition(&format!(r#"{{"title":"Big","questions":[{}]}}"#, questions.join(",")));
    store.insert_form(new_form(1, 12, big, 0)).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    for (id, text) in &sent {
        assert_eq!(
            *store.find_submission(workspace(1).form(form).submission(*id)).await.unwrap().unwrap().answers,
            **text
        );
    }
    let page = list_newest(&*store, workspace(1), form, None, 100).await.unwrap();
    let listed: Vec<_> =
        page.rows.into_iter().rev().map(|found| (found.id, found.answers.into_string())).collect();
    assert_eq!(listed, sent);
    let found = current(&*store, workspace(1), form_id(12)).await.unwrap();
    assert_eq!(found.version.questions.len(), 500);
    assert_eq!(found.version.questions[499].description.as_deref(), Some("499"));
}

pub(super) async fn submissions_are_paged_without_gaps_during_concurrent_writes(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut expected = Vec::new();
    for number in 0..250 {
        expected.push(submit(&*store, form, &format!("{{\"q1\":\"{number}\"}}"), number).await);
    }
    expected.reverse();
    let mut seen = Vec::new();
    let mut before = None;
    for limit in [1, 7, 120, 200, 10] {
        let page = list_newest(&*store, workspace(1), form, before, limit).await.unwrap();
        before = page.rows.last().map(|last| last.id).or(before);
        seen.extend(page.rows.into_iter().map(|found| found.id));
        submit(&*store, form, "{}", 1_000).await;
    }
    assert_eq!(seen, expected);
}

pub(super) async fn a_page_of_large_submissions_ends_early(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let text = format!("{{\"q1\":\"{}\"}}", "x".repeat(1_000_000));
    let mut ids = Vec::new();
    for number in 0..12 {
        ids.push(submit(&*store, form, &text, number).await);
    }
    let (mut seen, mut before, mut pages) = (0, None, 0);
    loop {
        let page = list_newest(&*store, workspace(1), form, before, 1_000).await.unwrap();
        assert_eq!(page.rows.len(), 1);
        (seen, pages, before) = (seen + page.rows.len(), pages + 1, page.next);
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, 12);
    assert_eq!(pages, 12);
    for id in ids {
        assert!(matches!(trash_submission(&*store, form, id, 20).await, StepResult::Done(())));
    }
    assert_eq!(list_trash(&*store, form, 1_000).await.len(), 12);
}

pub(super) async fn submissions_of_one_group_are_paged_individually(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut expected = Vec::new();
    for (round, count) in [1, 90, 3, 128, 1, 17].into_iter().enumerate() {
        expected.extend(submit_concurrently(&store, form, count, round as i64).await);
    }
    expected.reverse();
    for limit in [1, 2, 7, 50, 239, 240, 241] {
        assert_eq!(list_all(&*store, form, limit).await, expected, "pages of {limit}");
    }
    let unknown = SubmissionId::from_bytes([0xff; 16]);
    assert_eq!(store.find_submission(workspace(1).form(form).submission(unknown)).await.unwrap(), None);
    store.close().await.unwrap();
    let store = fixture.open();
    assert_eq!(list_all(&*store, form, 100).await, expected);
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 240);
}
