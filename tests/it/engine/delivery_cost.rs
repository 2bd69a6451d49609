//! What reading a queue costs: by what is asked for, not by what waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forms::store::{DeliveryPlace, StepResult, Store};

use super::machine::Machine;
use super::observed_index::open_observed;
use crate::store::deliveries::{
    begin, deliver_due, failure, finish, form_with, load, send, submit_many, submit_with, waiting_queues,
};
use crate::store::{at, workspace};

#[tokio::test]
async fn a_queue_with_ten_thousand_deliveries_is_read_in_pages() {
    let (machine, rows) = (Machine::new(1), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&rows);
    let store = open_observed(&machine, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let store: Arc<dyn Store> = Arc::new(store);
    let (form, queues) = form_with(&*store, 1, &["one", "two"]).await;
    // A failed delivery for each of the first thousand, the others in the outbox.
    for _ in 0..2 {
        submit_many(&store, form, 500, 5).await;
    }
    loop {
        let due = load(&*store, queues[0], 10, 500).await.due;
        if due.is_empty() {
            break;
        }
        let begun = begin(&*store, queues[0], send(&due), 10).await;
        finish(&*store, queues[0], begun, failure(), 10).await;
    }
    for _ in 0..18 {
        submit_many(&store, form, 500, 5).await;
    }
    let count = || rows.swap(0, Ordering::Relaxed);
    count();
    let due = load(&*store, queues[0], 11, 10).await.due;
    let of_outbox = count();
    assert_eq!((due.len(), due[0].delivery.attempts), (10, 0));
    let retried = load(&*store, queues[0], 3_600_000, 10).await.due;
    let of_retries = count();
    assert_eq!((retried.len(), retried[0].delivery.attempts), (10, 1));
    begin(&*store, queues[0], send(&due), 12).await;
    let of_begin = count();
    waiting_queues(&*store).await;
    let of_list = count();
    let all = [of_outbox, of_retries, of_begin, of_list];
    assert!(all.iter().all(|rows| *rows < 150), "{all:?}");
    submit_with(&*store, form, 13, true).await;
    assert!(count() < 20, "a submission reads few rows");
    deliver_due(&*store, queues[1], 13, 500).await;
    let totals = store.queue_totals(workspace(1), form).await.unwrap();
    assert_eq!(totals.iter().map(|queue| queue.pending).collect::<Vec<_>>(), [10_001, 0]);
    // Other forms with something in their outboxes.
    for number in 2..100 {
        let (other, _) = form_with(&*store, number, &["one"]).await;
        submit_with(&*store, other, 14, true).await;
    }
    let waiting = load(&*store, queues[0], 15, 100).await.due.pop().unwrap().delivery;
    count();
    let step = store.cancel_delivery(workspace(1), DeliveryPlace::of(&waiting), at(16)).await.unwrap();
    assert!(matches!(step, StepResult::Done(_)), "{step:?}");
    assert!(count() < 60, "a delivery whose place is known is changed without a search");
}
