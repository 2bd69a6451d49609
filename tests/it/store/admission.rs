//! Admission of submissions: idempotency, refusals, rechecks, the response limit.

use std::sync::Arc;
use std::time::Duration;

use forms::domain::form::admission::{AcceptingReason, Refusal};
use forms::domain::revision::ExpectedRevision;
use forms::store::{IdempotentOperation, NewForm, NewSubmission, StepResult};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::{
    StoreFixture, at, create_draft, form_id, idempotency_key, list_newest, new_draft, new_submission, patch,
    published_form, update_form, workspace,
};

const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn a_repeated_request_is_stored_once(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let operation = IdempotentOperation::CreateSubmission(form);
    let attempt = |key, body| NewSubmission {
        idempotency_key: idempotency_key(operation, key, body),
        ..new_submission(form, "{}")
    };
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (store, new) = (Arc::clone(&store), attempt(1, 5));
        tasks.spawn(async move { store.accept_submission(new, at(0)).await.unwrap() });
    }
    let steps = tasks.join_all().await;
    let done: Vec<_> = steps
        .iter()
        .filter_map(|step| if let StepResult::Done(id) = step { Some(*id) } else { None })
        .collect();
    assert_eq!(done.len(), 1);
    assert!(
        steps
            .iter()
            .all(|step| matches!(step, StepResult::Done(id) | StepResult::Replayed(id) if *id == done[0]))
    );
    let other = store.accept_submission(attempt(1, 6), at(1)).await.unwrap();
    assert!(matches!(other, StepResult::Refused(Refusal::KeyReused)));
    let new_form = |form, millis| NewForm {
        idempotency_key: idempotency_key(IdempotentOperation::CreateForm, 1, 5),
        ..new_draft(1, form, millis)
    };
    assert!(matches!(store.insert_form(new_form(30, 7)).await.unwrap(), StepResult::Done(_)));
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    let replayed = store.insert_form(new_form(31, 8)).await.unwrap();
    assert!(matches!(replayed, StepResult::Replayed((id, made)) if id == form_id(30) && made == at(7)));
    let replayed = store.accept_submission(attempt(1, 5), at(9)).await.unwrap();
    assert!(matches!(replayed, StepResult::Replayed(id) if id == done[0]));
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 1);
    let find = async |key| store.find_record(&attempt(key, 5).idempotency_key.unwrap(), at(9)).await.unwrap();
    let record = find(1).await.unwrap().unwrap();
    assert_eq!((record.body, record.at), (5, at(0)));
    assert_eq!(find(2).await, None);
}

pub(super) async fn an_idempotency_record_expires_after_a_day(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let attempt = |key| NewSubmission {
        idempotency_key: idempotency_key(IdempotentOperation::CreateSubmission(form), key, 5),
        ..new_submission(form, "{}")
    };
    let day = 24 * 60 * 60 * 1_000;
    // More records than one slice erases, and one that expires later.
    for (key, millis) in (1..=120).map(|key| (key, 0)).chain([(200, 2)]) {
        store.accept_submission(attempt(key), at(millis)).await.unwrap();
    }
    let same = store.accept_submission(attempt(1), at(day - 1)).await.unwrap();
    assert!(matches!(same, StepResult::Replayed(_)));
    let anew = store.accept_submission(attempt(1), at(day)).await.unwrap();
    assert!(matches!(anew, StepResult::Done(_)));
    store.erase_expired_keys(at(day + 1));
    let exists =
        async |key| store.find_record(&attempt(key).idempotency_key.unwrap(), at(0)).await.unwrap().is_some();
    let erased = async {
        for key in 2..=120 {
            while exists(key).await {
                yield_now().await;
            }
        }
    };
    timeout(TIMEOUT, erased).await.expect("expired keys are left");
    for (key, why) in [(1, "it was used again since"), (200, "it has not expired")] {
        assert!(exists(key).await, "{why}");
    }
}

pub(super) async fn a_submission_checked_against_an_old_revision_is_checked_again(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let stale = NewSubmission { checked_revision: 1, ..new_submission(form, "{}") };
    assert!(matches!(store.accept_submission(stale, at(0)).await.unwrap(), StepResult::Recheck));
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 0);
    assert!(matches!(store.insert_form(new_draft(1, 11, 0)).await.unwrap(), StepResult::Recheck));
}

pub(super) async fn a_draft_form_refuses_submissions_and_an_unknown_form_is_missing(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    let draft = create_draft(&*store, 1, 11, 0).await;
    let new = NewSubmission { checked_revision: 1, ..new_submission(draft, "{}") };
    let refused = store.accept_submission(new, at(0)).await.unwrap();
    assert!(matches!(
        refused,
        StepResult::Refused(Refusal::NotAccepting { reason: AcceptingReason::Draft, .. })
    ));
    let missing = store.accept_submission(new_submission(form_id(99), "{}"), at(0)).await.unwrap();
    assert!(matches!(missing, StepResult::Missing));
    assert!(list_newest(&*store, workspace(1), form_id(99), None, 5).await.is_none());
    assert_eq!(store.count_submissions(workspace(1).form(form_id(99))).await.unwrap(), 0);
}

pub(super) async fn the_response_limit_is_exact_under_concurrency(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let limited = patch(r#"{"settings":{"max_responses":40}}"#);
    update_form(&*store, workspace(1), form, limited, ExpectedRevision::Any, at(1)).await;
    let send = |number: u128| NewSubmission {
        checked_revision: 3,
        idempotency_key: idempotency_key(IdempotentOperation::CreateSubmission(form), number, 5),
        ..new_submission(form, "{}")
    };
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let (store, new) = (Arc::clone(&store), send(number));
        tasks.spawn(async move { store.accept_submission(new, at(2)).await.unwrap() });
    }
    let steps = tasks.join_all().await;
    assert_eq!(steps.iter().filter(|step| matches!(step, StepResult::Done(_))).count(), 40);
    assert_eq!(
        steps
            .iter()
            .filter(|step| matches!(
                step,
                StepResult::Refused(Refusal::NotAccepting { reason: AcceptingReason::Full, .. })
            ))
            .count(),
        24
    );
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    let one_more = store.accept_submission(send(99), at(3)).await.unwrap();
    assert!(matches!(
        one_more,
        StepResult::Refused(Refusal::NotAccepting { reason: AcceptingReason::Full, .. })
    ));
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 40);
    // A repeated submission is replayed even when the form is full.
    let mut replayed = 0;
    for number in 0..64 {
        let step = store.accept_submission(send(number), at(4)).await.unwrap();
        replayed += usize::from(matches!(step, StepResult::Replayed(_)));
    }
    assert_eq!(replayed, 40);
}
