//! Queues: every submission once to every integration, claims, retries, pauses.

use forms::clock::DAY_MILLIS;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::domain::integration::event::{EventType, Subject};
use forms::domain::json;
use forms::store::{
    AttemptEnd, Claims, ConfirmationPermit, FinishedAttempt, NewSubmission, QueueId, Room, StepResult, Store,
};

use super::deliveries::*;
use super::{
    StoreFixture, at, change_form, done, edit_submission, find_submission, is_ready, new_submission,
    published_form, wait_until,
};
use crate::delivery::google::{SPREADSHEET, key_file};

/// A queue whose deliveries are attempted in their order.
pub(super) fn sheet() -> String {
    let account = json::Value::from(key_file().as_str());
    format!(
        r#"{{"name":"sheet","type":"google_sheets","spreadsheet_id":"{SPREADSHEET}","service_account":{account}}}"#
    )
}

async fn claim_all(store: &dyn Store, millis: i64, room: Room) -> Claims {
    store.claim_due(OWNER, at(millis), &mut |_, _, _| room).await.unwrap()
}

pub(super) async fn a_submission_is_delivered_once_to_each_integration(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let mut ids = submit_many(&*store, form, 120, 5).await;
    ids.push(submit_with(&*store, form, 6, true).await);
    let store = fixture.reopen(store).await;
    for (queue, batch) in queues.iter().zip([1, 50]) {
        let events = deliver_due(&*store, *queue, 10, batch).await;
        assert_eq!(ids_of(&events), completed(&ids));
        assert!(events.iter().map(|event| event.sequence).eq(1..=121));
        for (event, id) in events.iter().zip(&ids) {
            let submission = find_submission(&*store, form, *id).await.unwrap();
            assert_eq!(event.at, submission.submitted_at());
            assert_eq!(event.subject, Subject::Submission(Box::new(submission)));
            assert_eq!((event.event_type, event.form), (EventType::SubmissionCompleted, form));
        }
    }
    let store = fixture.rebuild(store).await;
    let none = claim_all(&*store, DAY_MILLIS, Room::For(9)).await;
    assert_eq!((none.batches.len(), none.next_due), (0, None));
    let next = submit_with(&*store, form, 20, true).await;
    let events = deliver_due(&*store, queues[0], 21, 9).await;
    assert_eq!((ids_of(&events), events[0].sequence), (completed(&[next]), 122));
}

pub(super) async fn a_claimed_delivery_is_claimed_again_once_it_is_released(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let queue = queues[0];
    submit_many(&*store, form, 4, 5).await;
    let first = claim(&*store, queue, 10, 3).await;
    let room = &mut |_: QueueId, _: &_, _: &_| Room::For(9);
    let others = store.claim_due(2, at(10), room).await.unwrap().batches.remove(0).deliveries;
    assert_eq!((first.len(), others.len()), (3, 1));
    assert_eq!(claim(&*store, queue, 10, 9).await, []);
    assert_eq!(status(&*store, &first[0]).await, DeliveryStatus::InFlight);
    store.release(OWNER).await;
    // Where servers share a store, an attempt that was cut off may have been carried out.
    let trust = |one: Delivery| Delivery { may_be_sent: false, ..one };
    let claim_again = async || claim(&*store, queue, 10, 9).await.into_iter().map(trust).collect::<Vec<_>>();
    assert_eq!(claim_again().await, first, "no attempt was spent");
    give_back(&*store, queue, &first[1..2]).await;
    assert_eq!(claim_again().await, first[1..2]);
    store.release(2).await;
    assert_eq!(claim_again().await, others);
    assert_eq!(list_all(&*store).await.iter().filter(|one| one.attempts > 0).count(), 0);
    // The process ends.
    let store = fixture.reopen(store).await;
    let again = claim(&*store, queue, 10, 9).await;
    assert_eq!((again.len(), &again[..3]), (4, &first[..]));
    finish(&*store, queue, again, Outcome::Delivered, 11).await;
    assert_eq!(claim(&*store, queue, 10, 9).await, []);
}

pub(super) async fn an_outcome_that_comes_too_late_is_dropped(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&*store, form, 2, 5).await;
    let late = claim(&*store, queues[0], 10, 2).await;
    store.release(OWNER).await;
    done(change(&*store, &late[0], ManualChange::Cancel, 11).await);
    let again = claim(&*store, queues[0], 11, 2).await;
    finish(&*store, queues[0], again, failure(), 12).await;
    finish(&*store, queues[0], late.clone(), Outcome::Delivered, 13).await;
    for (one, expected, attempts) in
        [(&late[0], DeliveryStatus::Canceled, 0), (&late[1], DeliveryStatus::Pending, 1)]
    {
        let found = find(&*store, one).await;
        assert_eq!((found.status, found.attempts), (expected, attempts));
        assert_eq!(store.list_attempts(one).await.unwrap().len(), attempts as usize);
    }
}

pub(super) async fn a_queue_without_room_waits(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    submit_with(&*store, form, 5, true).await;
    for (room, next) in [(Room::Full, None), (Room::For(0), None), (Room::After(at(50)), Some(at(50)))] {
        let claims = claim_all(&*store, 10, room).await;
        assert_eq!((claims.batches.len(), claims.next_due), (0, next), "{room:?}");
    }
    assert_eq!(claim_all(&*store, 49, Room::For(1)).await.batches.len(), 0);
    let claims = claim_all(&*store, 50, Room::For(1)).await;
    assert_eq!(claims.batches.len(), queues.len());
}

pub(super) async fn deliveries_in_order_wait_behind_the_first(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, _) = form_with(&*store, 1, &["one"]).await;
    let queue = set_integrations(&*store, form, &[sheet()], 2).await[0];
    let ids = submit_many(&*store, form, 3, 5).await;
    let first = claim(&*store, queue, 10, 1).await;
    finish(&*store, queue, first, failure(), 10).await;
    let waiting = claim_of(&*store, queue, 11, 9).await;
    let due = waiting.next_due.unwrap().millis() - at(0).millis();
    assert!(waiting.batches.is_empty() && due > 1_000, "{waiting:?}");
    assert_eq!(due_events(&*store, queue, due).await, completed(&ids));
    // The clock was a day ahead when the last one was submitted.
    deliver_due(&*store, queue, due, 9).await;
    let ahead = submit_with(&*store, form, due + DAY_MILLIS, true).await;
    store.bring_forward(at(due + 1)).await.unwrap();
    assert_eq!(due_events(&*store, queue, due + 1).await, completed(&[ahead]));
}

pub(super) async fn nothing_waits_longer_after_the_clock_was_set_back(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let queue = queues[0];
    let early = submit_with(&*store, form, 5, true).await;
    let claimed = claim(&*store, queue, 10, 9).await;
    finish(&*store, queue, claimed, failure(), 10 + DAY_MILLIS).await;
    let ahead = submit_with(&*store, form, 20 + DAY_MILLIS, true).await;
    let tried = list_all(&*store).await.remove(1);
    assert_eq!(tried.due_at(at(30)), Some(at(30)), "it is as good as due");
    assert_eq!(due_events(&*store, queue, 30).await, []);
    store.bring_forward(at(30)).await.unwrap();
    let mut due = due_events(&*store, queue, 30).await;
    due.sort_unstable();
    assert_eq!(due, completed(&[early, ahead]));
    // A wait of the schedule stays.
    let claimed = claim(&*store, queue, 30, 9).await;
    finish(&*store, queue, claimed, failure(), 40).await;
    store.bring_forward(at(41)).await.unwrap();
    assert_eq!(due_events(&*store, queue, 41).await, []);
}

pub(super) async fn a_queue_that_a_later_clock_delayed_is_looked_at_again(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, _) = form_with(&*store, 1, &["one"]).await;
    let hooks = [webhook("one", true, &["submission.completed"]), sheet()];
    let queues = set_integrations(&*store, form, &hooks, 2).await;
    let ids = submit_many(&*store, form, 2, 5).await;
    // By a clock a day ahead, one receiver is to be left alone for a second, and the other one fails.
    let ahead = 10 + DAY_MILLIS;
    let mut room = |queue, _: &_, _: &_| match queue == queues[0] {
        true => Room::After(at(ahead + 1_000)),
        false => Room::For(1),
    };
    let claimed = store.claim_due(OWNER, at(ahead), &mut room).await.unwrap().batches.remove(0).deliveries;
    finish(&*store, queues[1], claimed, failure(), ahead).await;
    let waiting = store.claim_due(OWNER, at(ahead), &mut room).await.unwrap();
    assert_eq!((waiting.batches.len(), waiting.next_due), (0, Some(at(ahead + 1_000))));
    assert_eq!(claim_all(&*store, 30, Room::For(9)).await.batches.len(), 0);
    store.bring_forward(at(30)).await.unwrap();
    let claims = claim_all(&*store, 30, Room::For(9)).await;
    for batch in &claims.batches {
        let events: Vec<_> = batch.deliveries.iter().map(|delivery| delivery.event).collect();
        assert_eq!(events, completed(&ids), "{batch:?}");
    }
    assert_eq!(claims.batches.len(), 2);
}

pub(super) async fn an_integration_whose_receiver_is_gone_is_paused_and_resumed(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let all = ["submission.completed", "integration.disabled"];
    let other = webhook("two", true, &all);
    let off = webhook("one", false, &all);
    let moved = webhook("one", true, &all).replace("com/one", "com/other");
    submit_many(&*store, form, 60, 5).await;
    deliver_due(&*store, queues[1], 6, 99).await;
    let mut millis = 10;
    for changes in [vec![off, webhook("one", true, &all)], vec![moved]] {
        let claimed = claim(&*store, queues[0], millis, 50).await;
        let dead = claimed[0].clone();
        let gone = Outcome::Gone { error: error() };
        let health = finish(&*store, queues[0], claimed, gone, millis + 1).await;
        assert!(health.paused.is_some());
        let all = list_all(&*store).await;
        let count = |wanted| {
            let ours = all.iter().filter(|one| one.target == dead.target);
            ours.filter(|one| one.status == wanted).count()
        };
        assert_eq!((count(DeliveryStatus::Dead), count(DeliveryStatus::Paused)), (50, 10));
        assert_eq!(due_events(&*store, queues[0], millis + 2).await, []);
        let told = deliver_due(&*store, queues[1], millis + 2, 9).await;
        let Subject::Integration { id, name, .. } = &told[0].subject else { panic!("{told:?}") };
        assert_eq!((told.len(), *id, name.as_str()), (1, queues[0].integration, "one"));
        assert_eq!(told[0].event_type, EventType::IntegrationDisabled);
        for change in changes {
            millis += 100;
            set_integrations(&*store, form, &[change, other.clone()], millis).await;
        }
        wait_until(async || totals(&*store, form).await[0].dead == 0).await;
        let claimed = claim(&*store, queues[0], millis, 100).await;
        assert_eq!((claimed.len(), totals(&*store, form).await[0].health.paused.clone()), (60, None));
        give_back(&*store, queues[0], &claimed).await;
        assert_eq!(load(&*store, &dead).await.body, Some(body(&dead)));
        millis += 100;
    }
}

pub(super) async fn a_revival_goes_on_after_a_restart(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&*store, form, 80, 5).await;
    let claimed = claim(&*store, queues[0], 10, 80).await;
    let last = claimed[79].clone();
    finish(&*store, queues[0], claimed, Outcome::Gone { error: error() }, 11).await;
    let moved = webhook("one", true, &["submission.completed"]).replace("com/one", "com/other");
    let moved = [moved];
    let mut resuming = Box::pin(set_integrations(&*store, form, &moved, 20));
    // The process may end at any time after this.
    while totals(&*store, form).await[0].health.paused.is_some() {
        is_ready(&mut resuming).await;
    }
    drop(resuming);
    let store = fixture.reopen(store).await;
    wait_until(async || totals(&*store, form).await[0].dead == 0).await;
    // Those that die again afterwards stay dead.
    let due = claim(&*store, queues[0], 21, 100).await;
    assert_eq!(due.len(), 80);
    finish(&*store, queues[0], due, permanent(), 22).await;
    let store = fixture.reopen(store).await;
    submit_with(&*store, form, 23, true).await;
    assert_eq!(status(&*store, &last).await, DeliveryStatus::Dead);
}

pub(super) async fn a_queue_is_woken_although_the_caller_is_gone(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    store.due_changed().await;
    let other = published_form(&*store, 2).await;
    done(change_form(&*store, other, r#"{"title":"Other"}"#, 2).await);
    let mut changed = store.due_changed();
    assert!(!is_ready(&mut changed).await, "a form without integrations has nothing to deliver");
    let new = NewSubmission { checked_revision: 3, ..new_submission(form, "{}") };
    let mut accepting = Box::pin(store.accept_submission(new, at(5)));
    is_ready(&mut accepting).await;
    drop(accepting);
    changed.await;
    assert_eq!(due_events(&*store, queues[0], 6).await.len(), 1);
}

pub(super) async fn only_what_integrations_are_owed_is_recorded(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_with(&*store, form, 5, false).await;
    assert_eq!(due_events(&*store, queues[0], 10).await, []);
    let completed_only = ["submission.completed"];
    let first = submit_with(&*store, form, 6, true).await;
    let definitions = [webhook("one", false, &completed_only), webhook("two", true, &completed_only)];
    let queues = set_integrations(&*store, form, &definitions, 7).await;
    let second = submit_with(&*store, form, 8, true).await;
    assert_eq!(due_events(&*store, queues[0], 9).await, [], "it is disabled");
    let definitions = [webhook("one", true, &completed_only), webhook("two", true, &completed_only)];
    assert_eq!(set_integrations(&*store, form, &definitions, 9).await, queues, "the ids stay");
    let third = submit_with(&*store, form, 10, true).await;
    assert_eq!(due_events(&*store, queues[0], 20).await, completed(&[first, third]));
    assert_eq!(due_events(&*store, queues[1], 20).await, completed(&[second, third]));
    let unsubscribed = [webhook("two", true, &["form.deleted"])];
    let queues = set_integrations(&*store, form, &unsubscribed, 21).await;
    submit_with(&*store, form, 22, true).await;
    assert_eq!(due_events(&*store, queues[0], 30).await, completed(&[second, third]));
}

pub(super) async fn a_removed_integration_cancels_what_waits(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    submit_many(&*store, form, 60, 5).await;
    let failed = claim(&*store, queues[0], 10, 40).await;
    finish(&*store, queues[0], failed, failure(), 11).await;
    let in_flight = claim(&*store, queues[0], 12, 5).await;
    let left = [webhook("two", true, &["submission.completed"])];
    assert_eq!(set_integrations(&*store, form, &left, 20).await, queues[1..]);
    finish(&*store, queues[0], in_flight.clone(), Outcome::Delivered, 21).await;
    assert!(store.list_attempts(&in_flight[0]).await.unwrap().is_empty());
    let all = list_all(&*store).await;
    let is_of_removed = |one: &&Delivery| one.target.integration == queues[0].integration;
    let of_removed: Vec<_> = all.iter().filter(is_of_removed).collect();
    assert_eq!(of_removed.len(), 60);
    let canceled = (DeliveryStatus::Canceled, Some(at(20)));
    assert!(of_removed.iter().all(|one| (one.status, one.finished_at) == canceled));
    let again = change(&*store, of_removed[0], ManualChange::Redeliver { wait_ms: 0 }, 30).await;
    assert!(matches!(again, StepResult::Refused(_)), "{again:?}");
    assert_eq!(deliver_due(&*store, queues[1], 40, 99).await.len(), 60);
}

pub(super) async fn what_a_file_does_not_show_yet_is_claimed(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 1).await;
    let file = |enabled| format!(r#"{{"name":"f","type":"csv_file","path":"a.csv","enabled":{enabled}}}"#);
    let queue = set_integrations(&*store, form, &[file(true)], 2).await[0];
    let id = submit_with(&*store, form, 5, true).await;
    let changes = async |store: &dyn Store| {
        let batch = claim_of(store, queue, 20, 9).await.batches.pop();
        batch.map(|batch| (batch.deliveries.len(), batch.changes))
    };
    let Some((1, first)) = changes(&*store).await else { panic!("the row was not claimed") };
    store.release(OWNER).await;
    let claimed = claim(&*store, queue, 20, 9).await;
    let result = sent(&claimed[0], Outcome::Delivered, 20);
    let finished = FinishedAttempt { result, delivery: claimed[0].clone() };
    store.finish(queue, vec![finished], first, at(20)).await.unwrap();
    assert_eq!(changes(&*store).await, None);
    submit_with(&*store, form, 21, false).await;
    let Some((0, Some(more))) = changes(&*store).await else { panic!("the submission was not claimed") };
    store.finish(queue, Vec::new(), Some(more), at(21)).await.unwrap();
    edit_submission(&*store, form, id, 0, "{}", 21).await;
    let Some((0, Some(edited))) = changes(&*store).await else { panic!("the edit was not claimed") };
    let store = fixture.reopen(store).await;
    assert_eq!(changes(&*store).await, Some((0, Some(edited))), "it was not written");
    store.finish(queue, Vec::new(), Some(edited), at(22)).await.unwrap();
    assert_eq!(changes(&*store).await, None);
    set_integrations(&*store, form, &[file(false)], 23).await;
    submit_with(&*store, form, 24, true).await;
    edit_submission(&*store, form, id, 1, "{}", 24).await;
    let replaced = changes(&*store).await;
    assert!(matches!(replaced, Some((0, Some(_)))), "it leaves a disabled file too: {replaced:?}");
}

pub(super) async fn an_address_gets_one_confirmation_a_day(fixture: &impl StoreFixture) {
    use ConfirmationPermit::{AlreadySent, Granted};
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&*store, form, 3, 5).await;
    let claimed = claim(&*store, queues[0], 10, 9).await;
    let permit = async |store: &dyn Store, place: usize, millis: i64| {
        store.permit_confirmation(&claimed[place], 7, at(millis)).await.unwrap()
    };
    let finish = async |store: &dyn Store, place: usize, outcome: Outcome, millis: i64| {
        let result = |one: &Delivery| match sent(one, outcome.clone(), millis) {
            AttemptEnd::Sent { started_at, report, jitter, body, to, .. } => {
                AttemptEnd::Sent { started_at, report, jitter, body, to, mailbox: Some(7) }
            }
            other => other,
        };
        finish_with(store, queues[0], vec![claimed[place].clone()], result, millis).await;
    };
    assert_eq!(permit(&*store, 0, 10).await, Granted);
    assert_eq!(permit(&*store, 1, 11).await, AlreadySent);
    finish(&*store, 0, permanent(), 12).await;
    assert_eq!(permit(&*store, 1, 13).await, Granted, "the other one is dead");
    finish(&*store, 1, Outcome::Delivered, 14).await;
    let store = fixture.reopen(store).await;
    assert_eq!(permit(&*store, 2, 16).await, AlreadySent);
    assert_eq!(permit(&*store, 2, DAY_MILLIS).await, AlreadySent);
    store.prune_deliveries(at(DAY_MILLIS + 14)).await.unwrap();
    assert_eq!(permit(&*store, 2, DAY_MILLIS + 14).await, Granted);
}
