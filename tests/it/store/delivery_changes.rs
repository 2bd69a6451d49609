//! Deliveries changed by hand, listed, counted, and erased after some time.

use std::sync::Arc;

use forms::clock::DAY_MILLIS;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::domain::form::admission::Refusal;
use forms::domain::revision::ExpectedRevision;
use forms::id::SubmissionId;
use forms::store::{DeliveryFilter, StepResult, Store};

use super::deliveries::*;
use super::{StoreFixture, at, restore_submission, trash_submission, workspace};
use crate::engine::random::Random;

const REDELIVER: ManualChange = ManualChange::Redeliver { wait_ms: 0 };

/// Whether a delivery belongs to a list.
type Condition<'a> = dyn Fn(&Delivery) -> bool + 'a;

fn is_not_pending(step: &StepResult<Delivery>) -> bool {
    matches!(step, StepResult::Refused(Refusal::NotPending))
}

pub(super) async fn only_what_waits_is_canceled(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 3, 5).await;
    let all = list_all(&*store).await;
    assert!(all.iter().all(|one| one.status == DeliveryStatus::Pending && one.created_at() == at(5)));
    let claimed = claim(&*store, queues[0], 6, 1).await;
    assert!(is_not_pending(&change(&*store, &claimed[0], ManualChange::Cancel, 7).await));
    finish(&*store, queues[0], claimed, failure(), 8).await;
    for place in [2, 0] {
        let canceled = change(&*store, &all[place], ManualChange::Cancel, 10).await;
        let StepResult::Done(canceled) = canceled else { panic!("{canceled:?}") };
        assert_eq!((canceled.status, canceled.finished_at), (DeliveryStatus::Canceled, Some(at(10))));
        assert_eq!(find(&*store, &all[place]).await, canceled);
        assert_eq!(load(&*store, &canceled).await.body, None);
        assert!(is_not_pending(&change(&*store, &all[place], ManualChange::Cancel, 11).await));
    }
    let events = deliver_due(&*store, queues[0], 3_600_000, 2).await;
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), completed(&ids[1..2]));
    assert!(is_not_pending(&change(&*store, &all[1], ManualChange::Cancel, 21).await));
    assert_counters(&*store, form, at(3_600_000)).await;
}

pub(super) async fn a_delivery_is_sent_again_on_request(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    let ids = submit_many(&store, form, 3, 5).await;
    let all = list_all(&*store).await;
    let claimed = claim(&*store, queues[0], 6, 1).await;
    let in_flight = change(&*store, &all[2], REDELIVER, 7).await;
    assert!(matches!(in_flight, StepResult::Done(one) if one.status == DeliveryStatus::InFlight));
    finish(&*store, queues[0], claimed, Outcome::Delivered, 8).await;
    // One that was delivered at once, and one that waits a little later.
    for (place, wait_ms) in [(2, 0), (0, 10)] {
        let again = change(&*store, &all[place], ManualChange::Redeliver { wait_ms }, 100).await;
        let StepResult::Done(again) = again else { panic!("{again:?}") };
        let expected = (DeliveryStatus::Pending, Some(at(100 + wait_ms)), true);
        assert_eq!((again.status, again.next_attempt_at, again.is_manual), expected);
    }
    assert_eq!(due_events(&*store, queues[0], 99).await, completed(&ids[1..2]));
    assert_eq!(due_events(&*store, queues[0], 109).await, completed(&[ids[1], ids[0]]));
    assert_eq!(deliver_due(&*store, queues[0], 110, 9).await.len(), 3);
    assert_eq!(store.list_attempts(&all[2]).await.unwrap().len(), 2);
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
    for (place, (_, queues)) in forms.iter().enumerate() {
        for _ in 0..place {
            let mut claimed = claim(&*store, queues[0], 500, 7).await;
            finish(&*store, queues[0], claimed.split_off(3), failure(), 501).await;
            finish(&*store, queues[0], claimed, Outcome::Delivered, 501).await;
        }
    }
    let all = list_deliveries(&*store, &DeliveryFilter::default(), 1_000).await;
    assert_eq!(all.len(), 3 * 2 * 36);
    let position = |one: &Delivery| (one.event, one.target);
    assert!(all.is_sorted_by(|one, next| position(one) > position(next)));
    for limit in [1, 5, 50] {
        let listed = list_deliveries(&*store, &DeliveryFilter::default(), limit).await;
        assert_eq!(listed, all, "pages of {limit}");
    }
    let (form, queues) = &forms[2];
    let (submission, integration) = (all[17].submission, queues[0].integration);
    let ended = vec![DeliveryStatus::Delivered, DeliveryStatus::Dead];
    let all_of = DeliveryFilter::default;
    let filters: [(DeliveryFilter, Box<Condition<'_>>); 6] = [
        (DeliveryFilter { form: Some(*form), ..all_of() }, Box::new(|one| one.form == *form)),
        (DeliveryFilter { forms: Some(vec![*form]), ..all_of() }, Box::new(|one| one.form == *form)),
        (
            DeliveryFilter { integration: Some(integration), ..all_of() },
            Box::new(|one| one.target.integration == integration),
        ),
        (DeliveryFilter { submission, ..all_of() }, Box::new(|one| one.submission == submission)),
        (
            DeliveryFilter { status: ended, ..all_of() },
            Box::new(|one| one.status == DeliveryStatus::Delivered),
        ),
        (
            DeliveryFilter { since: Some(at(30)), until: Some(at(70)), ..all_of() },
            Box::new(|one| (at(30)..at(70)).contains(&one.created_at())),
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
        assert_eq!(find(&*store, one).await, *one);
    }
}

pub(super) async fn a_list_shows_each_delivery_once_while_they_are_delivered(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let ids = submit_many(&store, form, 300, 5).await;
    let runner = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for queue in queues {
                deliver_due(&*store, queue, 10, 5).await;
            }
        })
    };
    let mut lists = 0;
    while !runner.is_finished() || lists == 0 {
        let filter = DeliveryFilter::default();
        let seen: std::collections::BTreeSet<_> =
            list_deliveries(&*store, &filter, 40).await.iter().map(Delivery::id).collect();
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
    let mut delivered = claim(&*store, queues[0], 10, 40).await;
    let mut in_flight = delivered.split_off(30);
    let failed = in_flight.split_off(7);
    finish(&*store, queues[0], delivered, Outcome::Delivered, 11).await;
    finish(&*store, queues[0], failed, permanent(), 11).await;
    trash_submission(&*store, form, ids[49], 12).await;
    let names = ["submission.completed"];
    let definitions = [webhook("one", true, &names), webhook("two", false, &names)];
    set_integrations(&*store, form, &definitions, 13).await;
    let stats = store.delivery_stats(workspace(1), at(20)).await.unwrap();
    let [("webhook", stats)] = &stats[..] else { panic!("{stats:?}") };
    // The deletion is owed to both, and `two` is paused.
    assert_eq!((stats.pending, stats.in_flight, stats.paused, stats.dead), (11, 7, 51, 3));
    assert_eq!((stats.oldest_due_at, stats.delivered), (Some(at(5)), 30));
    assert_counters(&*store, form, at(20)).await;
    let later = store.delivery_stats(workspace(1), at(12 + DAY_MILLIS)).await.unwrap();
    assert_eq!(later[0].1.delivered, 0);
}

/// Whether nothing waits for an erased submission but the news of its deletion.
async fn is_canceled(store: &dyn Store, submission: SubmissionId) -> bool {
    let filter = DeliveryFilter { submission: Some(submission), ..DeliveryFilter::default() };
    let all = list_deliveries(store, &filter, 50).await;
    all.iter().all(|one| one.event_type.is_deletion() || one.status.is_final())
}

pub(super) async fn counters_agree_with_a_list_after_random_changes(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let mut random = Random::new(1);
    let names = ["submission.completed", "submission.deleted"];
    let (form, _) = form_with(&*store, 1, &["one", "two"]).await;
    let mut queues =
        set_integrations(&*store, form, &["one", "two"].map(|one| webhook(one, true, &names)), 2).await;
    let (mut millis, mut live, mut trashed) = (100, Vec::new(), Vec::new());
    for _ in 0..600 {
        millis += random.below(600_000) as i64;
        let queue = *random.pick(&queues);
        match random.below(9) {
            0 | 1 => live.push(submit_with(&*store, form, millis, true).await),
            2 | 3 => {
                let outcome = random.pick(&[Outcome::Delivered, failure(), permanent()]).clone();
                carry_out(&*store, queue, &outcome, millis, 1 + random.below(5)).await;
            }
            4 if !live.is_empty() => {
                let id = live.swap_remove(random.below(live.len()));
                trash_submission(&*store, form, id, millis).await;
                trashed.push(id);
            }
            5 if !trashed.is_empty() => {
                let id = trashed.swap_remove(random.below(trashed.len()));
                if random.once_in(2) {
                    restore_submission(&*store, form, id, millis).await;
                    live.push(id);
                } else {
                    let any = ExpectedRevision::Any;
                    store
                        .purge_submission(workspace(1).form(form).submission(id), any, at(millis))
                        .await
                        .unwrap();
                    while !is_canceled(&*store, id).await {
                        tokio::task::yield_now().await;
                    }
                }
            }
            6 => {
                let mut all = list_all(&*store).await;
                // One that is delivered again is counted again.
                all.retain(|one| one.status != DeliveryStatus::Delivered);
                if !all.is_empty() {
                    let how = *random.pick(&[ManualChange::Cancel, REDELIVER]);
                    change(&*store, random.pick(&all), how, millis).await;
                }
            }
            7 => {
                let two = webhook("two", random.once_in(2), &names);
                let both = [webhook("one", true, &names), two];
                let definitions = if random.once_in(8) { &both[..1] } else { &both[..] };
                queues = set_integrations(&*store, form, definitions, millis).await;
            }
            _ => assert_counters(&*store, form, at(millis)).await,
        }
    }
    let attempted = list_all(&*store).await.iter().filter(|one| one.attempts > 0).count();
    assert!(attempted > 50, "{attempted} deliveries were attempted");
}

pub(super) async fn ended_deliveries_are_erased_after_some_days(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let (form, queues) = form_with(&*store, 1, &["one", "gone"]).await;
    let ids = submit_many(&store, form, 130, 5).await;
    trash_submission(&*store, form, ids[0], 6).await;
    // 131 of an integration that is removed, some of them dead, others canceled.
    let dead = claim(&*store, queues[1], 10, 20).await;
    finish(&*store, queues[1], dead, permanent(), 11).await;
    let all = ["submission.completed", "submission.deleted"];
    set_integrations(&*store, form, &[webhook("one", true, &all)], 11).await;
    let mut claimed = claim(&*store, queues[0], 12, 200).await;
    assert_eq!(claimed.len(), 131);
    let dead = claimed.split_off(100);
    let later = claimed.split_off(60);
    finish(&*store, queues[0], claimed, Outcome::Delivered, 12).await;
    finish(&*store, queues[0], later, Outcome::Delivered, 20).await;
    finish(&*store, queues[0], dead, permanent(), 12).await;
    submit_with(&*store, form, 13, true).await;
    for (days, left) in [(7, 40 + 31 + 20 + 1), (30, 1)] {
        store.prune_deliveries(at(15 + days * DAY_MILLIS)).unwrap();
        let rows = loop {
            let rows = list_all(&*store).await;
            if rows.len() <= left {
                break rows;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(rows.len(), left);
        assert_eq!(rows[0].status, DeliveryStatus::Pending);
        let is_kept = |one: &Delivery| one.status == DeliveryStatus::Dead || one.finished_at == Some(at(20));
        assert!(rows[1..].iter().all(is_kept));
        assert_counters(&*store, form, at(15 + days * DAY_MILLIS)).await;
    }
}
