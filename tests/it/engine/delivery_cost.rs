//! What deliveries cost: by what is asked for, not by what waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use forms::clock::DAY_MILLIS;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::store::Deliveries;

use super::machine::open_store;
use super::model_index::Observer;
use crate::store::deliveries::{
    change, claim, deliver_due, failure, finish, form_with, submit_many, submit_with, totals,
};
use crate::store::{at, done, workspace};

#[tokio::test]
async fn a_delivery_adds_two_rows_to_its_submission_and_a_counter_to_a_group() {
    let groups = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&groups);
    let store = open_store(Observer::of_writes(move |keys| written.lock().unwrap().push(keys)));
    let (form, _) = form_with(&store, 1, &["one", "two"]).await;
    let take = || std::mem::take(&mut *groups.lock().unwrap());
    // The first submission of a minute also writes the latest time of an id.
    submit_with(&store, form, 4, false).await;
    take();
    submit_with(&store, form, 5, false).await;
    let without: usize = take().iter().map(Vec::len).sum();
    submit_with(&store, form, 6, true).await;
    let with: usize = take().iter().map(Vec::len).sum();
    assert_eq!(with, without + 2 * (2 + 1));
    submit_many(&store, form, 500, 7).await;
    let (mut deliveries, mut groups) = (0, 0);
    for keys in take() {
        let count = |kind| keys.iter().filter(|key| key[0] == kind).count();
        if count(b'v') > 0 {
            assert_eq!((count(b'q'), count(b'n')), (count(b'v'), 2));
            (deliveries, groups) = (deliveries + count(b'v'), groups + 1);
        }
    }
    assert_eq!(deliveries, 1_000);
    assert!(groups < 250, "{groups} groups");
}

#[tokio::test]
async fn a_queue_with_ten_thousand_deliveries_is_read_in_pages() {
    let rows = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&rows);
    let store = open_store(Observer::of_reads(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    let (form, queues) = form_with(&store, 1, &["one", "two"]).await;
    // A failed delivery for each of the first thousand.
    for millis in 0..20 {
        submit_many(&store, form, 50, millis).await;
    }
    let failed = claim(&store, queues[0], 20, 1_000).await;
    finish(&store, queues[0], failed, failure(), 20).await;
    for millis in 0..180 {
        submit_many(&store, form, 50, 30 + millis).await;
    }
    let count = || rows.swap(0, Ordering::Relaxed);
    count();
    let fresh = claim(&store, queues[0], 300, 10).await;
    let of_claim = count();
    finish(&store, queues[0], fresh, failure(), 300).await;
    let of_finish = count();
    let retried = claim(&store, queues[0], DAY_MILLIS, 10).await;
    let of_retries = count();
    totals(&store, form).await;
    let of_totals = count();
    store.list_deliveries(workspace(1), &Default::default(), None, 10).await.unwrap();
    let of_list = count();
    let waiting = store.find_delivery(workspace(1), retried[0].id()).await.unwrap().unwrap().1;
    store.release(crate::store::deliveries::OWNER).await;
    done(change(&store, &waiting, ManualChange::Cancel, 400).await);
    let of_change = count();
    let all = [of_claim, of_finish, of_retries, of_totals, of_list, of_change];
    assert!(all.iter().all(|rows| *rows < 600), "{all:?}");
    submit_with(&store, form, 400, true).await;
    assert!(count() < 20, "a submission reads few rows");
    deliver_due(&store, queues[1], 400, 500).await;
    let totals = store.queue_totals(workspace(1).form(form)).await.unwrap();
    assert_eq!(totals.iter().map(|queue| queue.pending).collect::<Vec<_>>(), [10_000, 0]);
    count();
    store.bring_forward(at(401)).await.unwrap();
    assert!(count() < 13_000, "each that waits is looked at once");
}
