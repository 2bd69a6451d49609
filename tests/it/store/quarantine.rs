//! Submissions that may be spam: kept apart, released, erased.

use forms::domain::form::admission::Refusal;
use forms::domain::submission::FoundIn;
use forms::domain::submission::filter::SubmissionQuery;
use forms::store::{IdempotentOperation, NewSubmission, StepResult};

use super::deliveries::{completed, due_events, form_with, submit_with};
use super::{
    COMPLETED, QUARANTINED, StoreFixture, at, count, done, edit_submission, find_submission, idempotency_key,
    list_all, list_trash, list_uncounted, missing, new_submission, published_form, purge_submission,
    quarantine, release, restore_submission, submit, trash_form, trash_submission, workspace,
};

pub(super) async fn a_quarantined_submission_is_kept_apart_until_it_is_released(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 11, &["one"]).await;
    let idempotency_key = idempotency_key(IdempotentOperation::CreateSubmission(form), 1, 1);
    let new = new_submission(form, r#"{"q1":"pills"}"#);
    let new = NewSubmission { checked_revision: 3, status: QUARANTINED, idempotency_key, ..new };
    let id = done(store.accept_submission(new, at(5)).await.unwrap());
    let again = store.accept_submission(new, at(6)).await.unwrap();
    assert!(matches!(again, StepResult::Replayed(same) if same == id), "{again:?}");
    let original = store.find_original(workspace(1).form(form).submission(id)).await.unwrap().unwrap();
    assert_eq!((&*original.answers, original.status), (r#"{"q1":"pills"}"#, QUARANTINED));
    missing(edit_submission(&*store, form, id, 0, "{}", 7).await);
    missing(trash_submission(&*store, form, id, 7).await);
    let refused = restore_submission(&*store, form, id, 7).await;
    assert!(matches!(refused, StepResult::Refused(Refusal::NotInTrash)), "{refused:?}");
    let store = fixture.rebuild(store).await;
    assert_eq!((count(&*store, form).await, list_all(&*store, form, 9).await), (0, Vec::new()));
    assert_eq!(list_trash(&*store, form, 9).await, []);
    assert_eq!(due_events(&*store, queues[0], 8).await, []);
    let quarantined = list_uncounted(&*store, form, QUARANTINED, 9).await;
    assert_eq!(quarantined.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    assert_eq!(find_submission(&*store, form, id).await.as_ref(), quarantined.first());
    let later = submit_with(&*store, form, 8, false).await;
    let released = done(release(&*store, form, id, 20).await);
    assert_eq!((released.status, released.submitted_at()), (COMPLETED, at(5)));
    let refused = release(&*store, form, id, 21).await;
    assert!(matches!(refused, StepResult::Refused(Refusal::NotQuarantined)), "{refused:?}");
    assert_eq!(due_events(&*store, queues[0], 20).await, completed(&[id]));
    let store = fixture.rebuild(store).await;
    assert_eq!((count(&*store, form).await, list_all(&*store, form, 9).await), (2, vec![later, id]));
    assert_eq!(list_uncounted(&*store, form, QUARANTINED, 9).await, []);
}

pub(super) async fn what_is_quarantined_is_erased_like_the_trash(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    submit(&*store, form, r#"{"q1":"soup"}"#, 0).await;
    let mut spam = Vec::new();
    for millis in 1..=4 {
        spam.push(quarantine(&*store, form, r#"{"q1":"Pills"}"#, millis).await);
    }
    let query = SubmissionQuery { text: Some("pills".to_owned()), ..SubmissionQuery::default() };
    let found = store.find_traces(workspace(1).form(form), query, 9).await.unwrap().unwrap().unwrap();
    assert_eq!(found, spam.iter().map(|id| (*id, FoundIn::Trash)).collect::<Vec<_>>());
    done(purge_submission(&*store, form, spam[3]).await);
    // By the age of each, up to the horizon.
    assert_eq!(store.empty_trash(at(2)).await.unwrap(), 1);
    let left = list_uncounted(&*store, form, QUARANTINED, 1).await;
    assert_eq!(left.iter().map(|one| one.id).collect::<Vec<_>>(), [spam[2], spam[1]]);
    trash_form(&*store, form, 5).await;
    missing(release(&*store, form, spam[1], 6).await);
}
