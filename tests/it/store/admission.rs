//! Admission of submissions: idempotency, refusals, rechecks, the response limit.

use std::collections::BTreeSet;

use forms::domain::form::admission::Refusal;
use forms::store::{IdempotentOperation, NewForm, NewSubmission, StepResult};
use futures_util::future::join_all;

use super::{
    StoreFixture, at, count, done, form_id, idempotency_key, new_draft, new_submission, published_form,
    wait_until,
};

pub(super) async fn a_repeated_request_is_stored_once(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let operation = IdempotentOperation::CreateSubmission(form);
    let attempt = |key, body| NewSubmission {
        idempotency_key: idempotency_key(operation, key, body),
        ..new_submission(form, "{}")
    };
    let steps = join_all((0..64).map(|_| store.accept_submission(attempt(1, 5), at(0)))).await;
    let (mut stored, mut ids) = (0, BTreeSet::new());
    for step in steps {
        match step.unwrap() {
            StepResult::Done(id) => (stored, _) = (stored + 1, ids.insert(id)),
            StepResult::Replayed(id) => drop(ids.insert(id)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((stored, ids.len()), (1, 1));
    let other = store.accept_submission(attempt(1, 6), at(1)).await.unwrap();
    assert!(matches!(other, StepResult::Refused(Refusal::KeyReused)));
    let new_form = |form, millis| NewForm {
        idempotency_key: idempotency_key(IdempotentOperation::CreateForm, 1, 5),
        ..new_draft(1, form, millis)
    };
    done(store.insert_form(new_form(30, 7)).await.unwrap());
    let store = fixture.reopen(store).await;
    let replayed = store.insert_form(new_form(31, 8)).await.unwrap();
    assert!(matches!(replayed, StepResult::Replayed((id, made)) if id == form_id(30) && made == at(7)));
    let replayed = store.accept_submission(attempt(1, 5), at(9)).await.unwrap();
    assert!(matches!(replayed, StepResult::Replayed(id) if ids.contains(&id)));
    assert_eq!(count(&*store, form).await, 1);
    let find = async |key| store.find_record(&attempt(key, 5).idempotency_key.unwrap(), at(9)).await.unwrap();
    let record = find(1).await.unwrap().unwrap();
    assert_eq!((record.body, record.at), (5, at(0)));
    assert_eq!(find(2).await, None);
}

pub(super) async fn an_idempotency_record_expires_after_a_day(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
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
    done(store.accept_submission(attempt(1), at(day)).await.unwrap());
    store.erase_expired_keys(at(day + 1));
    let exists =
        async |key| store.find_record(&attempt(key).idempotency_key.unwrap(), at(0)).await.unwrap().is_some();
    for key in 2..=120 {
        wait_until(async || !exists(key).await).await;
    }
    for (key, why) in [(1, "it was used again since"), (200, "it has not expired")] {
        assert!(exists(key).await, "{why}");
    }
}
