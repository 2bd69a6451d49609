//! Deliveries changed by hand, listed, counted, and erased after some time.

use std::sync::Arc;

use forms::clock::DAY_MILLIS;
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::id::SubmissionId;
use forms::store::{DeliveryFilter, Store};

use super::deliveries::*;
use super::{StoreFixture, at, done, purge_submission, restore_submission, trash_submission, wait_until};
use crate::engine::random::Random;

const REDELIVER: ManualChange = ManualChange::Redeliver { wait_ms: 0 };

pub(super) async fn deliveries_are_listed_newest_first(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let mut forms = Vec::new();
    for number in 1..=3 {
        forms.push(form_with(&*store, number, &["one", "two"]).await);
    }
    for millis in 0..12 {
        for (form, _) in &forms {
            submit_many(&*store, *form, 3, 10 * millis).await;
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
    for one in &all {
        assert_eq!(find(&*store, one).await, *one);
    }
}

pub(super) async fn a_list_shows_each_delivery_once_while_they_are_delivered(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    let ids = submit_many(&*store, form, 300, 5).await;
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

/// Whether nothing waits for an erased submission but the news of its deletion.
async fn is_canceled(store: &dyn Store, submission: SubmissionId) -> bool {
    let filter = DeliveryFilter { submission: Some(submission), ..DeliveryFilter::default() };
    let all = list_deliveries(store, &filter, 50).await;
    all.iter().all(|one| one.event_type.is_deletion() || one.status.is_final())
}

pub(super) async fn counters_agree_with_a_list_after_random_changes(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
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
                    done(purge_submission(&*store, form, id).await);
                    wait_until(async || is_canceled(&*store, id).await).await;
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
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one", "gone"]).await;
    let ids = submit_many(&*store, form, 130, 5).await;
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
        store.prune_deliveries(at(15 + days * DAY_MILLIS)).await.unwrap();
        wait_until(async || list_all(&*store).await.len() <= left).await;
        let rows = list_all(&*store).await;
        assert_eq!(rows.len(), left);
        assert_eq!(rows[0].status, DeliveryStatus::Pending);
        let is_kept = |one: &Delivery| one.status == DeliveryStatus::Dead || one.finished_at == Some(at(20));
        assert!(rows[1..].iter().all(is_kept));
        assert_counters(&*store, form, at(15 + days * DAY_MILLIS)).await;
    }
}
