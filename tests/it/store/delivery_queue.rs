//! Queues: every submission once to every integration, leases, retries, pauses.

use forms::domain::delivery::DeliveryStatus;
use forms::domain::delivery::attempt::{AttemptResult, Outcome};
use forms::domain::integration::csv_file::{CsvFile, CsvPosition};
use forms::domain::integration::event::{EventType, Subject};
use forms::store::{AttemptDecision, DeliveryPlace, StepResult};

use super::deliveries::*;
use super::{StoreFixture, at, find_submission, insert_workspace, is_ready, patch, workspace};

const HOUR: i64 = 3_600_000;

pub(super) async fn a_submission_is_delivered_once_to_each_integration(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let mut ids = submit_many(&store, form, 120, 5).await;
    ids.push(submit_with(&*store, form, 6, true).await);
    assert_eq!(store.changed_queues().await, queues);
    assert_eq!(waiting_queues(&*store).await.len(), 2);
    store.close().await.unwrap();
    let store = fixture.open();
    for (queue, batch) in queues.iter().zip([1, 50]) {
        let events = deliver_due(&*store, *queue, 10, batch).await;
        assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), completed(&ids));
        assert!(events.iter().map(|event| event.sequence).eq(1..=121));
        for (event, id) in events.iter().zip(&ids) {
            let submission = find_submission(&*store, form, *id).await.unwrap();
            assert_eq!(event.at, submission.submitted_at());
            assert_eq!(event.subject, Subject::Submission(Box::new(submission)));
            assert_eq!((event.event_type, event.form), (EventType::SubmissionCompleted, form));
        }
    }
    assert_eq!(waiting_queues(&*store).await, []);
    store.close().await.unwrap();
    fixture.remove_index();
    let store = fixture.open();
    assert_eq!(waiting_queues(&*store).await, []);
    let next = submit_with(&*store, form, 20, true).await;
    let events = deliver_due(&*store, queues[0], 21, 9).await;
    assert_eq!(
        events.iter().map(|event| (event.id, event.sequence)).collect::<Vec<_>>(),
        [(completed(&[next])[0], 122)]
    );
}

pub(super) async fn an_attempt_begins_once(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&store, form, 3, 5).await;
    let loaded = load(&*store, queues[0], 10, 9).await;
    let attempts = send(&loaded.due);
    let begun = begin(&*store, queues[0], attempts.clone(), 10).await;
    assert_eq!(begun.len(), 3);
    assert_eq!(begun[0].delivery.status, DeliveryStatus::InFlight);
    assert_eq!(begun[0].body, body(&begun[0].delivery));
    assert_eq!(begin(&*store, queues[0], attempts, 10).await.len(), 0);
    let again = load(&*store, queues[0], 10, 9).await;
    assert_eq!((again.due.len(), again.next_due), (0, Some(at(10 + LEASE))));
    finish(&*store, queues[0], begun, Outcome::Delivered, 11).await;
    assert_eq!(load(&*store, queues[0], 10, 9).await.next_due, None);
}

pub(super) async fn entries_are_decided_in_order(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 3, 5).await;
    let loaded = load(&*store, queues[0], 10, 9).await;
    let begun = begin(&*store, queues[0], send(&loaded.due[1..]), 10).await;
    assert_eq!(begun.len(), 0, "the first entry would be skipped");
    let begun = begin(&*store, queues[0], send(&loaded.due[..2]), 10).await;
    assert_eq!(begun.len(), 2);
    assert_eq!(due_events(&*store, queues[0], 10).await, completed(&ids[2..]));
}

pub(super) async fn an_attempt_whose_lease_ended_was_interrupted(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_with(&*store, form, 5, true).await;
    let queue = queues[0];
    let first = begin(&*store, queue, send(&load(&*store, queue, 10, 9).await.due), 10).await;
    let (id, place) = (first[0].delivery.id(), DeliveryPlace::of(&first[0].delivery));
    store.close().await.unwrap();
    let store = fixture.open();
    assert_eq!(waiting_queues(&*store).await, [(queue, 10 + LEASE)]);
    let loaded = load(&*store, queue, 10 + LEASE, 9).await;
    assert_eq!(loaded.due.len(), 0);
    let next = loaded.next_due.expect("it is tried again");
    assert!(next > at(10 + LEASE), "it waits as after a failure");
    let attempts = store.list_attempts(workspace(1), place).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].number, attempts[0].result), (1, AttemptResult::Interrupted));
    assert_eq!(attempts[0].started_at, at(10));

    let later = next.millis() - at(0).millis();
    let due = load(&*store, queue, later, 9).await.due;
    assert_eq!(due[0].body, Some(body(&due[0].delivery)), "every attempt sends the same bytes");
    let second = begin(&*store, queue, send(&due), later).await;
    finish(&*store, queue, first, Outcome::Delivered, later).await;
    assert_eq!(
        status(&*store, &second[0].delivery).await,
        DeliveryStatus::InFlight,
        "an outcome came too late"
    );
    finish(&*store, queue, second, Outcome::Delivered, later + 1).await;
    let delivered = store.find_delivery(workspace(1), id).await.unwrap().unwrap();
    assert_eq!((delivered.status, delivered.attempts), (DeliveryStatus::Delivered, 2));
    let attempts = store.list_attempts(workspace(1), place).await.unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(store.load_delivery(workspace(1), place).await.unwrap().unwrap().1.body, None);
}

pub(super) async fn a_failed_delivery_is_retried_until_it_is_dead(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_with(&*store, form, 5, true).await;
    let (mut millis, mut attempts) = (10, 0);
    let dead = loop {
        let loaded = load(&*store, queues[0], millis, 9).await;
        let begun = begin(&*store, queues[0], send(&loaded.due), millis).await;
        attempts += 1;
        assert_eq!(begun[0].delivery.attempts, attempts);
        let delivery = begun[0].delivery.clone();
        let state = finish(&*store, queues[0], begun, failure(), millis).await;
        assert_eq!(state.health.failing_since, Some(at(10)));
        match load(&*store, queues[0], millis, 9).await.next_due {
            Some(next) => millis = next.millis() - at(0).millis(),
            None => break delivery,
        }
    };
    assert_eq!(attempts, 10);
    let found = store.load_delivery(workspace(1), DeliveryPlace::of(&dead)).await.unwrap().unwrap().1;
    assert_eq!((found.delivery.status, found.delivery.last_error), (DeliveryStatus::Dead, Some(error())));
    assert_eq!(found.body, Some(body(&dead)), "a dead delivery can be sent again");
    let totals = store.queue_totals(workspace(1), form).await.unwrap();
    assert_eq!(
        (totals[0].integration, totals[0].pending, totals[0].dead),
        (Some(queues[0].integration), 0, 1)
    );

    let again = store.redeliver(workspace(1), DeliveryPlace::of(&dead), at(millis + 1)).await.unwrap();
    let StepResult::Done(again) = again else { panic!("{again:?}") };
    assert_eq!((again.status, again.earlier_attempts), (DeliveryStatus::Pending, 10));
    assert_eq!(deliver_due(&*store, queues[0], millis + 1, 9).await.len(), 1);
    assert_eq!(status(&*store, &dead).await, DeliveryStatus::Delivered);
}

pub(super) async fn a_receiver_that_asks_to_be_called_later_paces_its_queue(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    submit_many(&store, form, 2, 5).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 10, 9).await.due), 10).await;
    let paced = Outcome::Paced { wait_ms: 30_000, error: error() };
    let state = finish(&*store, queues[0], begun, paced, 11).await;
    assert_eq!(state.paced_until, Some(at(30_011)));
    let loaded = load(&*store, queues[0], 30_010, 9).await;
    assert_eq!((loaded.due.len(), loaded.next_due), (0, Some(at(30_011))));
    let loaded = load(&*store, queues[0], 30_011, 9).await;
    assert_eq!((loaded.state.paced_until, loaded.due.len()), (Some(at(30_011)), 2));
    assert_eq!(load(&*store, queues[1], 10, 9).await.state.paced_until, None);
}

pub(super) async fn a_dead_lease_of_a_paused_queue_ends(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&store, form, 40, 5).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 10, 35).await.due), 10).await;
    set_integrations(&*store, form, &[webhook("one", false, &["submission.completed"])], 11).await;
    store.close().await.unwrap();
    let store = fixture.open();
    let loaded = load(&*store, queues[0], 12, 9).await;
    assert_eq!((loaded.due.len(), loaded.next_due), (0, Some(at(10 + LEASE))));
    for next in [Some(at(10 + LEASE)), None] {
        let loaded = load(&*store, queues[0], 10 + LEASE, 9).await;
        assert_eq!((loaded.due.len(), loaded.next_due), (0, next));
    }
    for one in &begun {
        let found = store.find_delivery(workspace(1), one.delivery.id()).await.unwrap().unwrap();
        assert_eq!((found.status, found.attempts), (DeliveryStatus::Paused, 1));
    }
}

pub(super) async fn an_integration_whose_receiver_is_gone_is_paused_and_resumed(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    submit_many(&store, form, 60, 5).await;
    deliver_due(&*store, queues[1], 6, 99).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 10, 50).await.due), 10).await;
    let dead = begun[0].delivery.clone();
    let state = finish(&*store, queues[0], begun, Outcome::Gone { error: error() }, 11).await;
    assert!(state.health.paused.is_some());
    let all = list_deliveries(&*store, &Default::default(), 30).await;
    let count = |wanted| {
        all.iter().filter(|one| one.integration == queues[0].integration && one.status == wanted).count()
    };
    assert_eq!((count(DeliveryStatus::Dead), count(DeliveryStatus::Paused)), (50, 10));

    let told = deliver_due(&*store, queues[1], 20, 9).await;
    let Subject::Integration { id, name, .. } = &told[0].subject else { panic!("{told:?}") };
    assert_eq!((told.len(), *id, name.as_str()), (1, queues[0].integration, "one"));
    assert_eq!((told[0].event_type, told[0].sequence), (EventType::IntegrationDisabled, 61));

    store.changed_queues().await;
    store.resume_queue(queues[0], at(HOUR)).await.unwrap();
    assert_eq!(store.changed_queues().await, queues);
    while store.queue_totals(workspace(1), form).await.unwrap()[0].dead > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.changed_queues().await, queues);
    let loaded = load(&*store, queues[0], HOUR, 100).await;
    assert_eq!((loaded.due.len(), loaded.state.health.paused), (60, None));
    assert_eq!(loaded.due.iter().filter(|due| due.body.is_some()).count(), 50);
    assert_eq!(status(&*store, &dead).await, DeliveryStatus::Pending);
}

pub(super) async fn a_revival_goes_on_after_a_restart(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&store, form, 80, 5).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 10, 80).await.due), 10).await;
    let last = begun[79].delivery.clone();
    finish(&*store, queues[0], begun, Outcome::Gone { error: error() }, 11).await;
    let mut resuming = Box::pin(store.resume_queue(queues[0], at(20)));
    // The process may end at any time after this.
    is_ready(&mut resuming).await;
    drop(resuming);
    store.close().await.unwrap();
    let store = fixture.open();
    assert_eq!(load(&*store, queues[0], 21, 100).await.state.health.paused, None);
    store.list_queues().await.unwrap();
    while store.queue_totals(workspace(1), form).await.unwrap()[0].dead > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(load(&*store, queues[0], 21, 100).await.due.len(), 80);
    // One that dies again afterwards stays dead.
    let due = load(&*store, queues[0], 21, 100).await.due;
    let begun = begin(&*store, queues[0], send(&due), 21).await;
    finish(&*store, queues[0], begun, Outcome::Permanent { error: error() }, 22).await;
    store.list_queues().await.unwrap();
    submit_with(&*store, form, 23, true).await;
    assert_eq!(status(&*store, &last).await, DeliveryStatus::Dead);
}

pub(super) async fn a_queue_is_woken_although_the_caller_is_gone(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    store.changed_queues().await;
    let new = forms::store::NewSubmission {
        form,
        checked_revision: 3,
        checked_version: 1,
        answers: "{}",
        metadata: None,
        notify: true,
        idempotency_key: None,
    };
    let mut accepting = Box::pin(store.accept_submission(workspace(1), new, at(5)));
    is_ready(&mut accepting).await;
    drop(accepting);
    assert_eq!(store.changed_queues().await, queues);
    assert_eq!(load(&*store, queues[0], 6, 9).await.due.len(), 1);
}

pub(super) async fn only_what_integrations_are_owed_is_recorded(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_with(&*store, form, 5, false).await;
    assert_eq!(due_events(&*store, queues[0], 10).await, []);
    let completed_only = ["submission.completed"];
    let first = submit_with(&*store, form, 6, true).await;
    let definitions = [webhook("one", false, &completed_only), webhook("two", true, &completed_only)];
    let queues = set_integrations(&*store, form, &definitions, 7).await;
    let second = submit_with(&*store, form, 8, true).await;
    let definitions = [webhook("one", true, &completed_only), webhook("two", true, &completed_only)];
    assert_eq!(set_integrations(&*store, form, &definitions, 9).await, queues, "the ids stay");
    let third = submit_with(&*store, form, 10, true).await;
    assert_eq!(due_events(&*store, queues[0], 20).await, completed(&[first, third]));
    assert_eq!(due_events(&*store, queues[1], 20).await, completed(&[second, third]));
    for queue in &queues {
        deliver_due(&*store, *queue, 20, 1).await;
    }
    assert_eq!(waiting_queues(&*store).await, []);
    let unsubscribed = [webhook("two", true, &["form.deleted"])];
    let queues = set_integrations(&*store, form, &unsubscribed, 21).await;
    submit_with(&*store, form, 22, true).await;
    assert_eq!(due_events(&*store, queues[0], 30).await, []);
}

pub(super) async fn a_long_outbox_of_others_is_skipped_in_steps(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let names = ["submission.completed"];
    let only_two = [webhook("one", false, &names), webhook("two", true, &names)];
    set_integrations(&*store, form, &only_two, 2).await;
    for millis in 0..300 {
        submit_with(&*store, form, 10 + millis, true).await;
    }
    let both = [webhook("one", true, &names), webhook("two", true, &names)];
    set_integrations(&*store, form, &both, 400).await;
    let last = submit_with(&*store, form, 401, true).await;
    let mut loads = 0;
    let due = loop {
        let loaded = load(&*store, queues[0], 500, 10).await;
        loads += 1;
        if !loaded.due.is_empty() {
            break loaded.due;
        }
        assert_eq!(loaded.next_due, Some(at(500)), "it goes on at once");
    };
    assert_eq!(due.iter().map(|due| due.delivery.event).collect::<Vec<_>>(), completed(&[last]));
    assert!(loads > 1, "300 rows were read at once");
    assert_eq!(deliver_due(&*store, queues[1], 500, 100).await.len(), 301);
}

pub(super) async fn a_removed_integration_cancels_what_waits(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    submit_many(&store, form, 60, 5).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 10, 40).await.due), 10).await;
    let one = begun[0].delivery.clone();
    finish(&*store, queues[0], begun, failure(), 11).await;
    deliver_due(&*store, queues[1], 12, 99).await;
    let left = [webhook("two", true, &["submission.completed"])];
    assert_eq!(set_integrations(&*store, form, &left, 20).await, queues[1..]);
    assert!(store.load_queue(queues[0], at(30), 9).await.unwrap().is_none());
    assert_eq!(status(&*store, &one).await, DeliveryStatus::Canceled);
    store.drop_queue(queues[0]);
    while !waiting_queues(&*store).await.is_empty() {
        tokio::task::yield_now().await;
    }
    let all = list_deliveries(&*store, &Default::default(), 30).await;
    let of_removed: Vec<_> = all.iter().filter(|one| one.integration == queues[0].integration).collect();
    assert_eq!(of_removed.len(), 40, "those that were attempted");
    assert!(
        of_removed
            .iter()
            .all(|one| one.status == DeliveryStatus::Canceled && one.finished_at == Some(at(20)))
    );
}

pub(super) async fn decisions_other_than_to_send_end_a_delivery(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&store, form, 2, 5).await;
    let due = load(&*store, queues[0], 10, 9).await.due;
    let mut decided = decide(&due[..1], |_| AttemptDecision::Skip);
    decided
        .extend(decide(&due[1..], |_| AttemptDecision::Fail(report(Outcome::Permanent { error: error() }))));
    assert_eq!(begin(&*store, queues[0], decided, 10).await.len(), 0);
    assert_eq!(status(&*store, &due[0].delivery).await, DeliveryStatus::Skipped);
    assert_eq!(status(&*store, &due[1].delivery).await, DeliveryStatus::Dead);
    let attempts = store.list_attempts(workspace(1), DeliveryPlace::of(&due[1].delivery)).await.unwrap();
    assert_eq!(attempts.len(), 1, "a failure to send counts as an attempt");
    assert_eq!(waiting_queues(&*store).await, []);
}

pub(super) async fn the_position_of_a_file_is_stored_with_its_deliveries(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_with(&*store, form, 5, true).await;
    let file = |length| CsvPosition {
        settings: CsvFile { path: "a.csv".to_owned(), delimiter: ',' },
        number: 1,
        columns: vec!["q1".to_owned()],
        length,
    };
    store.put_file_position(queues[0], file(0)).await.unwrap();
    let loaded = load(&*store, queues[0], 10, 9).await;
    assert_eq!(loaded.state.file, Some(file(0)));
    let begun = begin(&*store, queues[0], send(&loaded.due), 10).await;
    let finished = begun.into_iter().map(|one| forms::store::FinishedAttempt {
        delivery: one.delivery,
        started_at: at(10),
        report: report(Outcome::Delivered),
        jitter: 1.0,
    });
    let state = store.finish_attempts(queues[0], finished.collect(), Some(file(40)), at(11)).await.unwrap();
    assert_eq!(state.file, Some(file(40)));
    assert_eq!(load(&*store, queues[0], 12, 9).await.state.file, Some(file(40)));
}

pub(super) async fn deliveries_are_not_visible_from_another_workspace(fixture: &impl StoreFixture) {
    let store = fixture.open();
    insert_workspace(&*store, 2, 0).await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&store, form, 2, 5).await;
    let due = load(&*store, queues[0], 10, 1).await.due;
    let begun = begin(&*store, queues[0], send(&due), 10).await;
    let waiting = load(&*store, queues[0], 10, 9).await.due;
    let foreign = forms::store::QueueId { workspace: workspace(2), ..queues[0] };
    assert!(store.load_queue(foreign, at(10), 9).await.unwrap().is_none());
    assert_eq!(begin(&*store, foreign, send(&waiting), 10).await.len(), 0);
    for delivery in [&begun[0].delivery, &waiting[0].delivery] {
        let (id, place) = (delivery.id(), DeliveryPlace::of(delivery));
        assert!(store.find_delivery(workspace(1), id).await.unwrap().is_some());
        assert_eq!(store.find_delivery(workspace(2), id).await.unwrap(), None);
        assert!(store.load_delivery(workspace(2), place).await.unwrap().is_none());
        assert!(store.list_attempts(workspace(2), place).await.unwrap().is_empty());
        for step in [
            store.redeliver(workspace(2), place, at(10)).await.unwrap(),
            store.cancel_delivery(workspace(2), place, at(10)).await.unwrap(),
        ] {
            assert!(matches!(step, StepResult::Missing), "{step:?}");
        }
    }
    let list = store.list_deliveries(workspace(2), &Default::default(), None, 9).await.unwrap();
    assert_eq!((list.rows.len(), list.next), (0, None));
    assert!(store.queue_totals(workspace(2), form).await.unwrap().is_empty());
    assert!(store.delivery_stats(workspace(2), at(10)).await.unwrap().is_empty());
}

pub(super) async fn a_form_is_reported_once_it_has_something_to_deliver(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    store.changed_queues().await;
    change_form(&*store, super::published_form(&*store, 2).await, patch(r#"{"title":"Other"}"#), 2).await;
    let mut changed = std::pin::pin!(store.changed_queues());
    assert!(!is_ready(&mut changed).await, "a form without integrations has nothing to deliver");
    submit_with(&*store, form, 5, true).await;
    assert_eq!(changed.await, queues);
}
