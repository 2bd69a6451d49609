//! Events other than completed submissions; deliveries of what is in the trash, restored or erased.

use forms::domain::delivery::DeliveryStatus;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::integration::event::{Event, EventType, Subject};
use forms::domain::revision::ExpectedRevision;
use forms::id::{FormId, SubmissionId};
use forms::store::{AttemptDecision, DeliveryPlace, DueDelivery, QueueId, StepResult, Store};

use super::deliveries::*;
use super::{
    StoreFixture, at, edit_submission, find_submission, patch, restore_submission, trash_form,
    trash_submission, workspace,
};

fn types(events: &[Event]) -> Vec<EventType> {
    events.iter().map(|event| event.event_type).collect()
}

pub(super) async fn changes_of_a_form_and_its_submissions_are_delivered(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let id = submit_with(&*store, form, 5, true).await;
    let edited = edit_submission(&*store, form, id, 0, r#"{"q1":"salad"}"#, 6).await;
    let StepResult::Done(edited) = edited else { panic!("{edited:?}") };
    edit_submission(&*store, form, id, 1, r#"{"q1":"cake"}"#, 7).await;
    assert!(matches!(trash_submission(&*store, form, id, 8).await, StepResult::Done(())));
    assert!(matches!(restore_submission(&*store, form, id, 9).await, StepResult::Done(_)));
    change_form(&*store, form, patch(r#"{"title":"Dinner"}"#), 10).await;
    change_form(&*store, form, patch(r#"{"status":"draft"}"#), 11).await;
    change_form(&*store, form, patch(r#"{"status":"published"}"#), 12).await;
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

pub(super) async fn events_that_nobody_subscribes_to_are_not_recorded(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = super::published_form(&*store, 1).await;
    let definitions =
        [webhook("one", true, &["form.deleted"]), webhook("two", false, &["submission.deleted"])];
    let queues = set_integrations(&*store, form, &definitions, 2).await;
    let id = submit_with(&*store, form, 5, true).await;
    edit_submission(&*store, form, id, 0, "{}", 6).await;
    trash_submission(&*store, form, id, 7).await;
    assert_eq!(waiting_queues(&*store).await, []);
    trash_form(&*store, form, 8).await;
    let events = deliver_due(&*store, queues[0], 9, 9).await;
    assert_eq!((types(&events), events[0].sequence), (vec![EventType::FormDeleted], 1));
}

pub(super) async fn a_form_in_the_trash_pauses_all_but_deletions(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 3, 5).await;
    let due = load(&*store, queues[0], 6, 1).await.due;
    let begun = begin(&*store, queues[0], send(&due), 6).await;
    finish(&*store, queues[0], begun, failure(), 6).await;
    let loaded = load(&*store, queues[0], 7, 9).await;
    trash_form(&*store, form, 8).await;
    assert_eq!(begin(&*store, queues[0], send(&loaded.due), 9).await.len(), 0, "they were loaded before");
    let all = list_deliveries(&*store, &Default::default(), 9).await;
    let paused = all.iter().filter(|one| one.status == DeliveryStatus::Paused);
    assert_eq!((paused.count(), all.len()), (3, 4));
    store.changed_queues().await;
    assert_eq!(types(&deliver_due(&*store, queues[0], 3_600_000, 9).await), [EventType::FormDeleted]);
    assert_eq!(waiting_queues(&*store).await, []);

    let restored = store.restore_form(workspace(1), form, None, at(10)).await.unwrap();
    assert!(matches!(restored, StepResult::Done(_)));
    assert_eq!(store.changed_queues().await, queues);
    let events = deliver_due(&*store, queues[0], 3_600_000, 9).await;
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), completed(&ids));
}

/// Two submissions of which one has an attempt behind it and an update, both in the trash and paused.
async fn paused_submissions(store: &dyn Store) -> (FormId, QueueId, [SubmissionId; 2], Vec<DueDelivery>) {
    let (form, queues) = form_with(store, 1, &["one"]).await;
    let queue = queues[0];
    let first = submit_with(store, form, 5, true).await;
    edit_submission(store, form, first, 0, r#"{"q1":"salad"}"#, 6).await;
    let loaded = load(store, queue, 7, 9).await;
    assert_eq!(loaded.due.len(), 2);
    let begun = begin(store, queue, send(&loaded.due), 7).await;
    finish(store, queue, begun, failure(), 8).await;
    let second = submit_with(store, form, 9, true).await;
    for id in [first, second] {
        assert!(matches!(trash_submission(store, form, id, 10).await, StepResult::Done(())));
    }
    let due = load(store, queue, 3_600_000, 9).await.due;
    let (waiting, deletions): (Vec<_>, Vec<_>) = due.into_iter().partition(|due| due.is_in_trash);
    assert_eq!((waiting.len(), deletions.len()), (3, 2));
    let decided = decide(&waiting, |_| AttemptDecision::Pause);
    assert_eq!(begin(store, queue, decided, 11).await.len(), 0);
    let deletions = begin(store, queue, send(&deletions), 11).await;
    assert_eq!(deletions.len(), 2);
    finish(store, queue, deletions, Outcome::Delivered, 11).await;
    assert_eq!(load(store, queue, 3_600_000, 9).await.due.len(), 0);
    for due in &waiting {
        assert_eq!(status(store, &due.delivery).await, DeliveryStatus::Paused);
    }
    (form, queue, [first, second], waiting)
}

pub(super) async fn deliveries_of_a_restored_submission_go_on(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queue, ids, waiting) = paused_submissions(&*store).await;
    assert_eq!(store.queue_totals(workspace(1), form).await.unwrap()[0].pending, 3);
    store.changed_queues().await;
    for id in ids {
        assert!(matches!(restore_submission(&*store, form, id, 12).await, StepResult::Done(_)));
    }
    assert_eq!(store.changed_queues().await, [queue]);
    let mut due = load(&*store, queue, 12, 9).await.due;
    due.sort_by_key(|due| due.delivery.event);
    let mut expected: Vec<_> = waiting.iter().map(|due| due.delivery.event).collect();
    expected.sort_unstable();
    assert_eq!(due.iter().map(|due| due.delivery.event).collect::<Vec<_>>(), expected);
    assert_eq!(due.iter().filter(|due| due.body.is_some()).count(), 2, "what was attempted keeps its body");
    assert!(due.iter().all(|due| !due.is_in_trash && due.event.is_some()));
    assert_eq!(deliver_due(&*store, queue, 13, 9).await.len(), 3);
}

pub(super) async fn deliveries_of_an_erased_submission_are_canceled(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queue, ids, waiting) = paused_submissions(&*store).await;
    let third = submit_with(&*store, form, 12, true).await;
    for id in [ids[0], third] {
        let step =
            store.purge_submission(workspace(1), form, id, ExpectedRevision::Any, at(13)).await.unwrap();
        assert!(matches!(step, StepResult::Done(())));
    }
    assert_eq!(store.empty_trash(at(20)).await.unwrap(), 1);
    for due in &waiting {
        while status(&*store, &due.delivery).await != DeliveryStatus::Canceled {
            tokio::task::yield_now().await;
        }
        let found =
            store.load_delivery(workspace(1), DeliveryPlace::of(&due.delivery)).await.unwrap().unwrap().1;
        assert_eq!((found.event, found.body, found.delivery.finished_at), (None, None, Some(at(10))));
        let attempts = store.list_attempts(workspace(1), DeliveryPlace::of(&due.delivery)).await.unwrap();
        assert_eq!(attempts, [], "receivers may have answered with what they got");
    }
    let due = load(&*store, queue, 30, 9).await.due;
    let (erased, deletion): (Vec<_>, Vec<_>) = due.into_iter().partition(|due| due.event.is_none());
    assert_eq!((erased.len(), deletion.len()), (1, 1));
    assert_eq!(deletion[0].delivery.event_type, EventType::SubmissionDeleted);
    begin(&*store, queue, decide(&erased, |_| AttemptDecision::Cancel), 30).await;
    assert_eq!(status(&*store, &erased[0].delivery).await, DeliveryStatus::Canceled);
}

pub(super) async fn a_decision_about_the_trash_is_checked_again(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let id = submit_with(&*store, form, 5, true).await;
    trash_submission(&*store, form, id, 6).await;
    let due: Vec<_> =
        load(&*store, queues[0], 7, 9).await.due.into_iter().filter(|due| due.is_in_trash).collect();
    assert_eq!(due.len(), 1);
    restore_submission(&*store, form, id, 8).await;
    begin(&*store, queues[0], decide(&due, |_| AttemptDecision::Pause), 9).await;
    assert_eq!(status(&*store, &due[0].delivery).await, DeliveryStatus::Pending, "it would wait for ever");
    begin(&*store, queues[0], decide(&due, |_| AttemptDecision::Cancel), 9).await;
    assert_eq!(status(&*store, &due[0].delivery).await, DeliveryStatus::Pending, "it would be lost");
    assert!(find_submission(&*store, form, id).await.is_some());
    let events = deliver_due(&*store, queues[0], 10, 9).await;
    assert!(events.iter().any(|event| event.id == due[0].delivery.event));
}

pub(super) async fn a_submission_erased_after_it_was_loaded_is_not_sent(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let id = submit_with(&*store, form, 5, true).await;
    let due = load(&*store, queues[0], 6, 9).await.due;
    let purged = store.purge_submission(workspace(1), form, id, ExpectedRevision::Any, at(7)).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    assert_eq!(begin(&*store, queues[0], send(&due), 8).await.len(), 0);
    let found =
        store.load_delivery(workspace(1), DeliveryPlace::of(&due[0].delivery)).await.unwrap().unwrap().1;
    assert_eq!((found.delivery.status, found.body), (DeliveryStatus::Canceled, None));
    assert_eq!(types(&deliver_due(&*store, queues[0], 9, 9).await), [EventType::SubmissionDeleted]);
}

pub(super) async fn nothing_is_delivered_of_an_erased_form(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&store, form, 60, 5).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 6, 9).await.due), 6).await;
    let loaded = load(&*store, queues[0], 6, 9).await;
    let purged = store.purge_form(workspace(1), form, ExpectedRevision::Any).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    assert!(store.load_queue(queues[0], at(7), 9).await.unwrap().is_none());
    assert_eq!(begin(&*store, queues[0], send(&loaded.due), 7).await.len(), 0);
    let one = begun[0].delivery.id();
    finish(&*store, queues[0], begun, Outcome::Delivered, 8).await;
    assert_eq!(waiting_queues(&*store).await, []);
    assert_eq!(store.find_delivery(workspace(1), one).await.unwrap(), None);
    assert_eq!(list_deliveries(&*store, &Default::default(), 9).await, []);
}
