//! Events other than completed submissions; deliveries of what is in the trash, restored or erased.

use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::domain::integration::event::{Event, EventType, Subject};
use forms::id::{FormId, SubmissionId};
use forms::store::{AttemptEnd, QueueId, Store};

use super::deliveries::*;
use super::{
    StoreFixture, at, change_form, done, edit_submission, purge_form, purge_submission, restore_form,
    restore_submission, trash_form, trash_submission, wait_until, workspace,
};

fn types(events: &[Event]) -> Vec<EventType> {
    events.iter().map(|event| event.event_type).collect()
}

pub(super) async fn changes_of_a_form_and_its_submissions_are_delivered(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let id = submit_with(&*store, form, 5, true).await;
    let edited = done(edit_submission(&*store, form, id, 0, r#"{"q1":"salad"}"#, 6).await);
    edit_submission(&*store, form, id, 1, r#"{"q1":"cake"}"#, 7).await;
    done(trash_submission(&*store, form, id, 8).await);
    done(restore_submission(&*store, form, id, 9).await);
    done(change_form(&*store, form, r#"{"title":"Dinner"}"#, 10).await);
    done(change_form(&*store, form, r#"{"status":"draft"}"#, 11).await);
    done(change_form(&*store, form, r#"{"status":"published"}"#, 12).await);
    let mut events = deliver_due(&*store, queues[0], 20, 3).await;
    events.sort_by_key(|event| event.sequence);
    assert_eq!(
        types(&events),
        [
            EventType::SubmissionCompleted,
            EventType::SubmissionUpdated,
            EventType::SubmissionUpdated,
            EventType::SubmissionDeleted,
            EventType::FormUnpublished,
            EventType::FormPublished,
        ]
    );
    assert!(events.iter().map(|event| event.sequence).eq(1..=6));
    assert_eq!(events[1].subject, Subject::Submission(Box::new(edited)), "as it was after that edit");
    let Subject::Submission(original) = &events[0].subject else { panic!("{:?}", events[0]) };
    assert_eq!((&*original.answers, original.edited), (r#"{"q1":"soup"}"#, None));
    assert_eq!((&events[3].subject, events[3].at), (&Subject::DeletedSubmission(id), at(8)));
    assert_eq!((&events[4].subject, events[4].at), (&Subject::Form, at(11)));
}

pub(super) async fn a_form_in_the_trash_pauses_all_but_deletions(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&*store, form, 3, 5).await;
    let failed = claim(&*store, queues[0], 6, 1).await;
    finish(&*store, queues[0], failed, failure(), 6).await;
    trash_form(&*store, form, 8).await;
    let all = list_all(&*store).await;
    let paused = all.iter().filter(|one| one.status == DeliveryStatus::Paused);
    assert_eq!((paused.count(), all.len()), (3, 4));
    assert_eq!(types(&deliver_due(&*store, queues[0], 3_600_000, 9).await), [EventType::FormDeleted]);
    done(restore_form(&*store, form, 10).await);
    let events = deliver_due(&*store, queues[0], 3_600_000, 9).await;
    let mut delivered = ids_of(&events);
    delivered.sort_unstable();
    assert_eq!(delivered, completed(&ids));
    assert_counters(&*store, form, at(3_600_000)).await;
}

/// Two submissions of which one has an attempt behind it and an update, both in the trash and paused.
async fn paused_submissions(store: &dyn Store) -> (FormId, QueueId, [SubmissionId; 2], Vec<Delivery>) {
    let (form, queues) = form_with(store, 1, &["one"]).await;
    let queue = queues[0];
    let first = submit_with(store, form, 5, true).await;
    edit_submission(store, form, first, 0, r#"{"q1":"salad"}"#, 6).await;
    let claimed = claim(store, queue, 7, 9).await;
    assert_eq!(claimed.len(), 2);
    finish(store, queue, claimed, failure(), 8).await;
    let second = submit_with(store, form, 9, true).await;
    for id in [first, second] {
        done(trash_submission(store, form, id, 10).await);
    }
    let told = types(&deliver_due(store, queue, 3_600_000, 9).await);
    assert_eq!(told, [EventType::SubmissionDeleted; 2]);
    let all = list_all(store).await;
    let paused: Vec<_> = all.into_iter().filter(|one| one.status == DeliveryStatus::Paused).collect();
    assert_eq!(paused.len(), 3);
    assert_counters(store, form, at(3_600_000)).await;
    (form, queue, [first, second], paused)
}

pub(super) async fn deliveries_of_a_restored_submission_go_on(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queue, ids, paused) = paused_submissions(&*store).await;
    for id in ids {
        done(restore_submission(&*store, form, id, 12).await);
    }
    let mut due = due_events(&*store, queue, 12).await;
    due.sort_unstable();
    assert!(due.iter().eq(paused.iter().rev().map(|one| &one.event)), "{due:?}");
    let mut bodies = 0;
    for one in &paused {
        bodies += usize::from(load(&*store, one).await.body.is_some());
    }
    assert_eq!(bodies, 2, "what was attempted keeps its body");
    assert_eq!(deliver_due(&*store, queue, 13, 9).await.len(), 3);
    assert_counters(&*store, form, at(14)).await;
}

pub(super) async fn deliveries_of_an_erased_submission_are_canceled(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queue, ids, paused) = paused_submissions(&*store).await;
    let third = submit_with(&*store, form, 12, true).await;
    // Its attempt is in progress.
    let in_flight = claim(&*store, queue, 12, 9).await;
    assert_eq!(in_flight.len(), 1);
    for id in [ids[0], third] {
        done(purge_submission(&*store, form, id).await);
    }
    assert_eq!(store.empty_trash(at(20)).await.unwrap(), 1);
    for one in paused.iter().chain(&in_flight) {
        wait_until(async || status(&*store, one).await == DeliveryStatus::Canceled).await;
    }
    finish(&*store, queue, in_flight.clone(), failure(), 14).await;
    for one in paused.iter().chain(&in_flight) {
        let loaded = load(&*store, one).await;
        assert_eq!((loaded.event, loaded.body), (None, None));
        assert_eq!(status(&*store, one).await, DeliveryStatus::Canceled, "its outcome is dropped");
        let attempts = store.list_attempts(one).await.unwrap();
        assert_eq!(attempts, [], "receivers may have answered with what they got");
    }
    assert_eq!(types(&deliver_due(&*store, queue, 1_000, 9).await), [EventType::SubmissionDeleted]);
    assert_counters(&*store, form, at(1_001)).await;
}

pub(super) async fn nothing_of_an_erased_submission_is_sent_or_shown_meanwhile(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let id = submit_with(&*store, form, 5, true).await;
    for count in 0..100 {
        edit_submission(&*store, form, id, count, "{}", 6).await;
    }
    let failed = claim(&*store, queues[0], 7, 50).await;
    finish(&*store, queues[0], failed, failure(), 8).await;
    let all = list_all(&*store).await;
    // Its rows are erased in the background, many at a time.
    done(purge_submission(&*store, form, id).await);
    for one in &all {
        let loaded = load(&*store, one).await;
        assert_eq!((loaded.event, loaded.body), (None, None));
        assert_eq!(store.list_attempts(one).await.unwrap(), []);
    }
}

pub(super) async fn a_submission_that_was_restored_meanwhile_is_not_paused(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let id = submit_with(&*store, form, 5, true).await;
    trash_submission(&*store, form, id, 6).await;
    let mut claimed = claim(&*store, queues[0], 7, 9).await;
    claimed.retain(|one| one.event_type == EventType::SubmissionCompleted);
    assert!(load(&*store, &claimed[0]).await.is_in_trash);
    restore_submission(&*store, form, id, 8).await;
    finish_with(&*store, queues[0], claimed.clone(), |_| AttemptEnd::NotSent, 9).await;
    assert_eq!(status(&*store, &claimed[0]).await, DeliveryStatus::Pending, "it would wait for ever");
    assert_eq!(deliver_due(&*store, queues[0], 10, 9).await[0].id, claimed[0].event);
}

pub(super) async fn nothing_is_delivered_of_an_erased_form(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&*store, form, 60, 5).await;
    let claimed = claim(&*store, queues[0], 6, 9).await;
    done(purge_form(&*store, form).await);
    let one = claimed[0].id();
    finish(&*store, queues[0], claimed, Outcome::Delivered, 8).await;
    assert_eq!(due_events(&*store, queues[0], 9).await, []);
    assert_eq!(store.find_delivery(workspace(1), one).await.unwrap(), None);
    assert_eq!(list_all(&*store).await, []);
}
