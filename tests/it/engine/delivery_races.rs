//! Deliveries, when something happens at a moment that is not expected.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forms::clock::{Clock, DAY_MILLIS, SystemClock};
use forms::delivery::{DeliveryService, DeliverySettings};
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::id::{EventId, FormId};
use forms::store::sled::SledStore;
use forms::store::{Deliveries, StepResult, Store};
use tokio::time::{advance, pause, resume, sleep, timeout};

use super::machine::open_store;
use super::model_index::Observer;
use super::races::Interruption;
use crate::harness::{ManualClock, RecordingSender, Running, VAULT};
use crate::store::deliveries::{
    assert_counters, change, claim, failure, finish, form_with, list_all, set_integrations, status,
    submit_many, submit_with, totals, webhook,
};
use crate::store::{SeededRandom, at, done, is_ready, purge_submission, restore_form, trash_form};

#[tokio::test]
async fn a_queue_goes_on_if_its_form_was_in_the_trash_while_it_was_loaded() {
    let trash = |this: Arc<Interruption<(SledStore, FormId)>>| async move {
        let (store, form) = this.state.get().unwrap();
        trash_form(store, *form, 6).await;
    };
    let (store, interruption) = Interruption::open(b"S", trash);
    let (id, _) = form_with(&store, 1, &["one"]).await;
    set_integrations(&store, id, &[webhook("one", true, &["submission.completed"])], 2).await;
    submit_with(&store, id, 5, true).await;
    interruption.state.set((store.clone(), id)).ok().unwrap();
    interruption.arm();
    let sender = Arc::new(RecordingSender::default());
    let running = start(&store, &sender, Arc::new(SystemClock));
    while interruption.is_armed() {
        sleep(Duration::from_millis(1)).await;
    }
    done(restore_form(&store, id, 7).await);
    wait_for_request(&sender).await;
    running.stop().await;
}

#[tokio::test]
async fn a_wait_ends_although_nothing_wakes_its_queue_if_the_clock_is_set_forward() {
    let store = open_store(Observer::none());
    let (form, queues) = form_with(&store, 1, &["one"]).await;
    set_integrations(&store, form, &[webhook("one", true, &["submission.completed"])], 2).await;
    submit_with(&store, form, 5, true).await;
    let clock = Arc::new(ManualClock::at("2025-11-20T12:00:00Z"));
    let now = clock.now().millis() - at(0).millis();
    let failed = claim(&store, queues[0], now, 1).await;
    finish(&store, queues[0], failed, failure(), now).await;
    let sender = Arc::new(RecordingSender::default());
    let running = start(&store, &sender, clock.clone());
    sleep(Duration::from_millis(50)).await;
    assert!(sender.take().is_empty());
    clock.advance(3_600_000);
    pause();
    advance(Duration::from_secs(31)).await;
    resume();
    wait_for_request(&sender).await;
    running.stop().await;
}

#[tokio::test]
async fn a_delivery_that_is_canceled_while_it_is_brought_forward_stays_canceled() {
    for _ in 0..20 {
        if cancel_while_brought_forward().await {
            return;
        }
    }
    panic!("the delivery was always brought forward before it could be canceled");
}

/// Cancels a delivery while maintenance has read it and not yet written it; returns false if maintenance was too fast.
async fn cancel_while_brought_forward() -> bool {
    let waiting = Arc::new(OnceLock::new());
    let reads = Arc::new(AtomicUsize::new(0));
    let on_read = {
        let (waiting, reads) = (Arc::clone(&waiting), Arc::clone(&reads));
        move |key: &[u8]| {
            let is_entry = |event: &EventId| key[0] == b'q' && key.ends_with(&event.to_bytes());
            if waiting.get().is_some_and(is_entry) {
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let store = open_store(Observer::of_reads(on_read));
    let (form, queues) = form_with(&store, 1, &["one"]).await;
    submit_with(&store, form, 5, true).await;
    let failed = claim(&store, queues[0], 10, 1).await.remove(0);
    finish(&store, queues[0], vec![failed.clone()], failure(), 10 + DAY_MILLIS).await;
    waiting.set(failed.event).unwrap();
    let mut maintaining = store.bring_forward(at(20));
    // Once to find the queue, once to find the entry.
    while reads.load(Ordering::Relaxed) < 2 {
        if is_ready(&mut maintaining).await {
            return false;
        }
        sleep(Duration::from_millis(20)).await;
    }
    done(change(&store, &failed, ManualChange::Cancel, 21).await);
    maintaining.await.unwrap();
    assert_eq!(status(&store, &failed).await, DeliveryStatus::Canceled);
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_delivery_is_either_sent_or_canceled() {
    let store: Arc<dyn Store> = Arc::new(open_store(Observer::none()));
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    set_integrations(&*store, form, &[webhook("one", true, &["submission.completed"])], 2).await;
    let ids = submit_many(&*store, form, 300, 5).await;
    let all = list_all(&*store).await;
    let deliverer = {
        let (store, queue) = (Arc::clone(&store), queues[0]);
        tokio::spawn(async move {
            let mut claims = Vec::new();
            while totals(&*store, form).await[0].pending > 0 {
                let claimed = claim(&*store, queue, 10, 7).await;
                claims.extend(claimed.iter().map(Delivery::id));
                finish(&*store, queue, claimed, Outcome::Delivered, 10).await;
            }
            claims
        })
    };
    let purger = {
        let (store, ids) = (Arc::clone(&store), ids.clone());
        tokio::spawn(async move {
            for id in ids.into_iter().step_by(3) {
                done(purge_submission(&*store, form, id).await);
            }
        })
    };
    let mut canceled = BTreeSet::new();
    for one in &all {
        if let StepResult::Done(_) = change(&*store, one, ManualChange::Cancel, 9).await {
            canceled.insert(one.id());
        }
    }
    purger.await.unwrap();
    let claims = deliverer.await.unwrap();
    let claimed: BTreeSet<_> = claims.iter().copied().collect();
    assert_eq!(claims.len(), claimed.len(), "one was claimed twice");
    for one in list_all(&*store).await {
        match one.status {
            DeliveryStatus::Delivered => assert!(claimed.contains(&one.id())),
            DeliveryStatus::Canceled => assert_eq!(one.attempts, 0),
            other => panic!("{other:?}"),
        }
        assert!(!canceled.contains(&one.id()) || !claimed.contains(&one.id()), "sent after it was canceled");
        assert!(one.status == DeliveryStatus::Canceled || !canceled.contains(&one.id()));
    }
    assert_counters(&*store, form, at(11)).await;
}

fn start(store: &SledStore, sender: &Arc<RecordingSender>, clock: Arc<dyn Clock>) -> Running {
    let (store, random) = (Arc::new(store.clone()), Arc::new(SeededRandom::new(2)));
    let (vault, settings) = (VAULT.clone(), DeliverySettings::default());
    let service = DeliveryService::new(store, vault, sender.clone(), clock, random, settings);
    Running::start(Arc::new(service), Running::TIMEOUT)
}

async fn wait_for_request(sender: &RecordingSender) {
    let received = async {
        while sender.take().is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Running::TIMEOUT, received).await.unwrap();
}
