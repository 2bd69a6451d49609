//! Deliveries changed by hand, listed, counted, and erased after some time.

use std::sync::Arc;

use forms::clock::DAY_MILLIS;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::domain::form::admission::Refusal;
use forms::store::{DeliveryFilter, DeliveryPlace, StepResult, Store};

use super::deliveries::*;
use super::{StoreFixture, at, trash_submission, workspace};

/// Whether a delivery belongs to a list.
type Condition<'a> = dyn Fn(&Delivery) -> bool + 'a;

async fn cancel(store: &dyn Store, delivery: &Delivery, millis: i64) -> StepResult<Delivery> {
    store.cancel_delivery(workspace(1), DeliveryPlace::of(delivery), at(millis)).await.unwrap()
}

async fn redeliver(store: &dyn Store, delivery: &Delivery, millis: i64) -> StepResult<Delivery> {
    store.redeliver(workspace(1), DeliveryPlace::of(delivery), at(millis)).await.unwrap()
}

pub(super) async fn a_waiting_delivery_is_canceled(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 6, 5).await;
    let all = list_deliveries(&*store, &DeliveryFilter::default(), 9).await;
    assert!(all.iter().all(|one| one.status == DeliveryStatus::Pending && one.created_at == at(5)));
    // The oldest is the next one of the queue; another one is further on.
    for place in [5, 2] {
        let canceled = cancel(&*store, &all[place], 10).await;
        let StepResult::Done(canceled) = canceled else { panic!("{canceled:?}") };
        assert_eq!((canceled.status, canceled.finished_at), (DeliveryStatus::Canceled, Some(at(10))));
        assert_eq!(status(&*store, &all[place]).await, DeliveryStatus::Canceled);
        assert!(matches!(cancel(&*store, &all[place], 11).await, StepResult::Refused(Refusal::NotPending)));
    }
    assert_eq!(store.queue_totals(workspace(1), form).await.unwrap()[0].pending, 4);
    let events = deliver_due(&*store, queues[0], 20, 2).await;
    let expected = completed(&[ids[1], ids[2], ids[4], ids[5]]);
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), expected);
    assert_eq!(store.queue_totals(workspace(1), form).await.unwrap()[0].pending, 0);
    assert!(matches!(cancel(&*store, &all[0], 21).await, StepResult::Refused(Refusal::NotPending)));
    assert_eq!(waiting_queues(&*store).await, []);
}

pub(super) async fn only_what_waits_is_canceled(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_with(&*store, form, 5, true).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 6, 9).await.due), 6).await;
    let delivery = begun[0].delivery.clone();
    assert!(matches!(cancel(&*store, &delivery, 7).await, StepResult::Refused(Refusal::NotPending)));
    finish(&*store, queues[0], begun, failure(), 8).await;
    assert!(matches!(cancel(&*store, &delivery, 9).await, StepResult::Done(_)));
    let found = store.load_delivery(workspace(1), DeliveryPlace::of(&delivery)).await.unwrap().unwrap().1;
    assert_eq!(found.body, None);
    assert!(found.event.is_some());
    assert_eq!(waiting_queues(&*store).await, []);
}

pub(super) async fn a_delivery_is_sent_again_on_request(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 4, 5).await;
    let all = list_deliveries(&*store, &DeliveryFilter::default(), 9).await;
    let begun = begin(&*store, queues[0], send(&load(&*store, queues[0], 6, 1).await.due), 6).await;
    let in_flight = redeliver(&*store, &all[3], 7).await;
    assert!(matches!(in_flight, StepResult::Done(one) if one.status == DeliveryStatus::InFlight));
    finish(&*store, queues[0], begun, Outcome::Delivered, 8).await;
    // One that was delivered, and one that waits in the outbox behind others.
    for place in [3, 0] {
        let again = redeliver(&*store, &all[place], 100).await;
        let StepResult::Done(again) = again else { panic!("{again:?}") };
        assert_eq!(
            (again.status, again.next_attempt_at, again.is_manual),
            (DeliveryStatus::Pending, Some(at(100)), true)
        );
    }
    assert_eq!(due_events(&*store, queues[0], 99).await, completed(&ids[1..3]));
    let events = deliver_due(&*store, queues[0], 100, 9).await;
    let mut events: Vec<_> = events.into_iter().map(|event| event.id).collect();
    events.sort_unstable();
    assert_eq!(events, completed(&ids));
    assert_eq!(store.list_attempts(workspace(1), DeliveryPlace::of(&all[3])).await.unwrap().len(), 2);
    assert_eq!(waiting_queues(&*store).await, []);
}

pub(super) async fn deliveries_are_listed_newest_first(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let mut forms = Vec::new();
    for number in 1..=3 {
        forms.push(form_with(&*store, number, &["one", "two"]).await);
    }
    for millis in 0..12 {
        for (form, _) in &forms {
            submit_many(&store, *form, 3, 10 * millis).await;
        }
    }
    // Some are delivered, some tried, and the rest still in the outbox.
    for (place, (_, queues)) in forms.iter().enumerate() {
        for _ in 0..place {
            let due = load(&*store, queues[0], 500, 7).await.due;
            let mut begun = begin(&*store, queues[0], send(&due), 500).await;
            finish(&*store, queues[0], begun.split_off(3), failure(), 501).await;
            finish(&*store, queues[0], begun, Outcome::Delivered, 501).await;
        }
    }
    let all = list_deliveries(&*store, &DeliveryFilter::default(), 1_000).await;
    assert_eq!(all.len(), 3 * 2 * 36);
    let position = |one: &Delivery| (one.event, one.integration);
    assert!(all.is_sorted_by(|one, next| position(one) > position(next)));
    for limit in [1, 5, 50] {
        assert_eq!(
            list_deliveries(&*store, &DeliveryFilter::default(), limit).await,
            all,
            "pages of {limit}"
        );
    }
    let (form, queues) = &forms[2];
    let submission = all[17].submission;
    let filters: [(DeliveryFilter, Box<Condition<'_>>); 6] = [
        (DeliveryFilter { form: Some(*form), ..Default::default() }, Box::new(|one| one.form == *form)),
        (
            DeliveryFilter { forms: Some(vec![*form]), ..Default::default() },
            Box::new(|one| one.form == *form),
        ),
        (
            DeliveryFilter { integration: Some(queues[0].integration), ..Default::default() },
            Box::new(|one| one.integration == queues[0].integration),
        ),
        (DeliveryFilter { submission, ..Default::default() }, Box::new(|one| one.submission == submission)),
        (
            DeliveryFilter {
                status: vec![DeliveryStatus::Delivered, DeliveryStatus::Dead],
                ..Default::default()
            },
            Box::new(|one| one.status == DeliveryStatus::Delivered),
        ),
        (
            DeliveryFilter { since: Some(at(30)), until: Some(at(70)), ..Default::default() },
            Box::new(|one| (at(30)..at(70)).contains(&one.created_at)),
        ),
    ];
    for (filter, matches) in filters {
        let expected: Vec<_> = all.iter().filter(|one| matches(one)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < all.len());
        for limit in [2, 100] {
            assert_eq!(list_deliveries(&*store, &filter, limit).await, expected, "{filter:?}");
        }
    }
    for one in &all {
        assert_eq!(store.find_delivery(workspace(1), one.id()).await.unwrap().as_ref(), Some(one));
    }
}

pub(super) async fn a_list_shows_each_delivery_once_while_they_are_delivered(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let ids = submit_many(&store, form, 300, 5).await;
    let runner = {
        let (store, queues) = (Arc::clone(&store), queues.clone());
        tokio::spawn(async move {
            for queue in queues {
                deliver_due(&*store, queue, 10, 5).await;
            }
        })
    };
    let mut lists = 0;
    while !runner.is_finished() || lists == 0 {
        let mut seen: Vec<_> =
            list_deliveries(&*store, &DeliveryFilter::default(), 40).await.iter().map(Delivery::id).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2 * ids.len());
        lists += 1;
    }
    runner.await.unwrap();
}

pub(super) async fn deliveries_are_counted_by_type_of_integration(fixture: &impl StoreFixture) {
    let store = fixture.open();
    assert!(store.delivery_stats(workspace(1), at(0)).await.unwrap().is_empty());
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let ids = submit_many(&store, form, 50, 5).await;
    let due = load(&*store, queues[0], 10, 40).await.due;
    let mut begun = begin(&*store, queues[0], send(&due), 10).await;
    let mut others = begun.split_off(30);
    let failed = others.split_off(7);
    finish(&*store, queues[0], begun, Outcome::Delivered, 11).await;
    finish(&*store, queues[0], failed, Outcome::Permanent { error: error() }, 11).await;
    trash_submission(&*store, form, ids[49], 12).await;
    set_integrations(
        &*store,
        form,
        &[webhook("one", true, &["submission.completed"]), webhook("two", false, &["submission.completed"])],
        13,
    )
    .await;
    let stats = store.delivery_stats(workspace(1), at(20)).await.unwrap();
    let [("webhook", stats)] = &stats[..] else { panic!("{stats:?}") };
    // The deletion is owed to both, and `two` is paused.
    assert_eq!((stats.pending, stats.in_flight, stats.paused, stats.dead), (11, 7, 51, 3));
    assert_eq!((stats.oldest_due_at, stats.delivered), (Some(at(5)), 30));
    assert_eq!((stats.p50_ms, stats.p99_ms), (Some(7), Some(7)));
    let later = store.delivery_stats(workspace(1), at(12 + DAY_MILLIS)).await.unwrap();
    assert_eq!((later[0].1.delivered, later[0].1.p50_ms), (0, None));
}

pub(super) async fn ended_deliveries_are_erased_after_some_days(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 130, 5).await;
    trash_submission(&*store, form, ids[0], 6).await;
    let due = load(&*store, queues[0], 10, 200).await.due;
    assert_eq!(due.len(), 131);
    let mut begun = begin(&*store, queues[0], send(&due), 10).await;
    let dead = begun.split_off(100);
    let later = begun.split_off(60);
    finish(&*store, queues[0], begun, Outcome::Delivered, 11).await;
    finish(&*store, queues[0], later, Outcome::Delivered, 20).await;
    finish(&*store, queues[0], dead, Outcome::Permanent { error: error() }, 11).await;
    let waiting = submit_with(&*store, form, 12, true).await;
    for (days, left) in [(7, 40 + 31 + 1), (30, 1)] {
        store.prune_deliveries(at(15 + days * DAY_MILLIS));
        let rows = loop {
            let rows = list_deliveries(&*store, &DeliveryFilter::default(), 100).await;
            if rows.len() <= left {
                break rows;
            }
        };
        assert_eq!(rows.len(), left);
        assert!(rows.iter().all(|one| one.finished_at != Some(at(11)) || one.status == DeliveryStatus::Dead));
        assert_eq!(rows[0].event, completed(&[waiting])[0]);
    }
    for due in due {
        assert_eq!(store.find_delivery(workspace(1), due.delivery.id()).await.unwrap(), None);
    }
}

pub(super) async fn what_was_decided_by_hand_is_not_forgotten_before_its_turn(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let mut ids = submit_many(&store, form, 60, 5).await;
    let all = list_deliveries(&*store, &DeliveryFilter::default(), 100).await;
    // All but the first are canceled, and one of these delivered on request.
    for one in &all[..59] {
        assert!(matches!(cancel(&*store, one, 10).await, StepResult::Done(_)));
    }
    assert!(matches!(redeliver(&*store, &all[7], 10).await, StepResult::Done(_)));
    let due = load(&*store, queues[0], 10, 1).await.due;
    assert_eq!(due[0].delivery.event, all[7].event);
    let begun = begin(&*store, queues[0], send(&due), 10).await;
    finish(&*store, queues[0], begun, Outcome::Delivered, 11).await;
    // Another one, which is erased once nothing is left to be done.
    ids.push(submit_with(&*store, form, 12, false).await);
    trash_submission(&*store, form, ids[60], 12).await;
    let deletion = load(&*store, queues[0], 12, 1).await.due;
    let begun = begin(&*store, queues[0], send(&deletion), 12).await;
    finish(&*store, queues[0], begun, Outcome::Delivered, 12).await;
    store.prune_deliveries(at(20 + 7 * DAY_MILLIS));
    while list_deliveries(&*store, &DeliveryFilter::default(), 100).await.len() > 60 {
        tokio::task::yield_now().await;
    }
    assert_eq!(due_events(&*store, queues[0], 30).await, completed(&ids[..1]));
    assert_eq!(deliver_due(&*store, queues[0], 30, 9).await.len(), 1);
    store.prune_deliveries(at(40 + 7 * DAY_MILLIS));
    while !list_deliveries(&*store, &DeliveryFilter::default(), 100).await.is_empty() {
        tokio::task::yield_now().await;
    }
}
