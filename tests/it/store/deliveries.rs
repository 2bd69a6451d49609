//! Forms with integrations, and a runner that sends nothing.

use forms::clock::Timestamp;
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::delivery::health::Health;
use forms::domain::delivery::lifecycle::ManualChange;
use forms::domain::delivery::{Delivery, DeliveryError, DeliveryStatus};
use forms::domain::integration::event::Event;
use forms::id::{EventId, FormId, SubmissionId};
use forms::store::{
    AttemptEnd, Claims, DeliveryFilter, FinishedAttempt, LoadedDelivery, NewSubmission, Owner, QueueId,
    QueueTotals, Room, StepResult, Store,
};
use futures_util::future::join_all;

use super::{all_pages, at, change_form, done, find_form, new_submission, published_form, workspace};

/// Who claims deliveries in these tests.
pub(crate) const OWNER: Owner = 1;

/// A published form of the workspace 1 with a webhook of each name that subscribes to everything.
pub(crate) async fn form_with(store: &dyn Store, number: u64, names: &[&str]) -> (FormId, Vec<QueueId>) {
    let form = published_form(store, number).await;
    let all = [
        "submission.completed",
        "submission.updated",
        "submission.deleted",
        "form.published",
        "form.unpublished",
        "form.deleted",
        "integration.disabled",
    ];
    let hooks: Vec<_> = names.iter().map(|name| webhook(name, true, &all)).collect();
    (form, set_integrations(store, form, &hooks, 1).await)
}

/// The definition of a webhook.
pub(crate) fn webhook(name: &str, enabled: bool, events: &[&str]) -> String {
    let events = events.iter().map(|event| format!("\"{event}\"")).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"name":"{name}","type":"webhook","url":"https://example.com/{name}","enabled":{enabled},"events":[{events}]}}"#
    )
}

/// Replaces the integrations of a form; returns their queues.
pub(crate) async fn set_integrations(
    store: &dyn Store,
    form: FormId,
    definitions: &[String],
    millis: i64,
) -> Vec<QueueId> {
    let change = format!(r#"{{"integrations":[{}]}}"#, definitions.join(","));
    done(change_form(store, form, &change, millis).await);
    queues_of(store, form).await
}

pub(crate) async fn queues_of(store: &dyn Store, form: FormId) -> Vec<QueueId> {
    let found = find_form(store, form).await.unwrap();
    let queue = |integration| QueueId { workspace: workspace(1), form, integration };
    found.integrations.iter().map(|one| queue(one.id)).collect()
}

/// Stores a submission, and owes it to the form's integrations if `notify`.
pub(crate) async fn submit_with(store: &dyn Store, form: FormId, millis: i64, notify: bool) -> SubmissionId {
    loop {
        let revision = find_form(store, form).await.unwrap().revision;
        let new =
            NewSubmission { checked_revision: revision, notify, ..new_submission(form, r#"{"q1":"soup"}"#) };
        let step = store.accept_submission(new, at(millis)).await.unwrap();
        if !matches!(step, StepResult::Recheck) {
            return done(step);
        }
    }
}

/// Stores `count` submissions concurrently, so that they share a sync; returns their ids in ascending order.
pub(crate) async fn submit_many(
    store: &dyn Store,
    form: FormId,
    count: usize,
    millis: i64,
) -> Vec<SubmissionId> {
    let mut ids = join_all((0..count).map(|_| submit_with(store, form, millis, true))).await;
    ids.sort_unstable();
    ids
}

pub(crate) fn completed(ids: &[SubmissionId]) -> Vec<EventId> {
    ids.iter().map(|id| EventId::of_completed(*id)).collect()
}

pub(crate) fn ids_of(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// Claims at most `limit` deliveries of one queue.
pub(crate) async fn claim_of(store: &dyn Store, queue: QueueId, millis: i64, limit: usize) -> Claims {
    let mut room = |other, _: &_, _: &_| Room::For(if other == queue { limit } else { 0 });
    store.claim_due(OWNER, at(millis), &mut room).await.unwrap()
}

pub(crate) async fn claim(store: &dyn Store, queue: QueueId, millis: i64, limit: usize) -> Vec<Delivery> {
    let claims = claim_of(store, queue, millis, limit).await;
    claims.batches.into_iter().flat_map(|batch| batch.deliveries).collect()
}

/// The events of the deliveries that are due.
pub(crate) async fn due_events(store: &dyn Store, queue: QueueId, millis: i64) -> Vec<EventId> {
    let due = claim(store, queue, millis, 1_000).await;
    give_back(store, queue, &due).await;
    due.iter().map(|delivery| delivery.event).collect()
}

/// Ends the claims of `deliveries`: nothing was sent.
pub(crate) async fn give_back(store: &dyn Store, queue: QueueId, deliveries: &[Delivery]) {
    finish_with(store, queue, deliveries.to_vec(), |_| AttemptEnd::NotSent, 0).await;
}

/// The body that a delivery has in these tests.
pub(crate) fn body(delivery: &Delivery) -> Vec<u8> {
    format!("{} to {:?}", delivery.event, delivery.target).into_bytes()
}

pub(crate) fn error() -> DeliveryError {
    ErrorCode::Timeout.error("no answer")
}

pub(crate) fn failure() -> Outcome {
    Outcome::Retryable { error: error(), is_slow: false }
}

pub(crate) fn permanent() -> Outcome {
    Outcome::Permanent { error: error() }
}

pub(crate) fn sent(delivery: &Delivery, outcome: Outcome, millis: i64) -> AttemptEnd {
    AttemptEnd::Sent {
        started_at: at(millis),
        report: Box::new(SendReport::new(outcome, 7)),
        jitter: 1.0,
        body: Some(body(delivery)),
        to: None,
        mailbox: None,
    }
}

pub(crate) async fn finish(
    store: &dyn Store,
    queue: QueueId,
    claimed: Vec<Delivery>,
    outcome: Outcome,
    millis: i64,
) -> Health {
    finish_with(store, queue, claimed, |delivery| sent(delivery, outcome.clone(), millis), millis).await
}

pub(crate) async fn finish_with(
    store: &dyn Store,
    queue: QueueId,
    claimed: Vec<Delivery>,
    result: impl Fn(&Delivery) -> AttemptEnd,
    millis: i64,
) -> Health {
    let finished =
        claimed.into_iter().map(|delivery| FinishedAttempt { result: result(&delivery), delivery });
    store.finish(queue, finished.collect(), None, at(millis)).await.unwrap()
}

pub(crate) async fn load(store: &dyn Store, delivery: &Delivery) -> LoadedDelivery {
    store.load_claimed(delivery).await.unwrap()
}

/// Carries out what is due of a queue with one outcome, `batch` at a time; returns the events in the order in which they were
/// sent. What is in the trash waits, and what was erased is canceled.
pub(crate) async fn carry_out(
    store: &dyn Store,
    queue: QueueId,
    outcome: &Outcome,
    millis: i64,
    batch: usize,
) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let claimed = claim(store, queue, millis, batch).await;
        assert!(claimed.len() <= batch);
        if claimed.is_empty() {
            return events;
        }
        let mut finished = Vec::new();
        for delivery in claimed {
            let result = match load(store, &delivery).await {
                LoadedDelivery { event: None, .. } => AttemptEnd::Canceled,
                LoadedDelivery { is_in_trash: true, .. } => AttemptEnd::NotSent,
                LoadedDelivery { event: Some(event), body: stored, .. } => {
                    assert!(stored.is_none_or(|stored| stored == body(&delivery)), "another body was stored");
                    events.push(event);
                    sent(&delivery, outcome.clone(), millis)
                }
            };
            finished.push(FinishedAttempt { delivery, result });
        }
        store.finish(queue, finished, None, at(millis)).await.unwrap();
    }
}

pub(crate) async fn deliver_due(store: &dyn Store, queue: QueueId, millis: i64, batch: usize) -> Vec<Event> {
    carry_out(store, queue, &Outcome::Delivered, millis, batch).await
}

pub(crate) async fn find(store: &dyn Store, delivery: &Delivery) -> Delivery {
    store.find_delivery(workspace(1), delivery.id()).await.unwrap().expect("the delivery exists").1
}

pub(crate) async fn status(store: &dyn Store, delivery: &Delivery) -> DeliveryStatus {
    find(store, delivery).await.status
}

pub(crate) async fn change(
    store: &dyn Store,
    delivery: &Delivery,
    change: ManualChange,
    millis: i64,
) -> StepResult<Delivery> {
    store.change_delivery(workspace(1), delivery.id(), change, at(millis)).await.unwrap()
}

/// Lists all deliveries that match `filter` by pages of `limit`.
pub(crate) async fn list_deliveries(
    store: &dyn Store,
    filter: &DeliveryFilter,
    limit: usize,
) -> Vec<Delivery> {
    let pages = async |after| {
        let page = store.list_deliveries(workspace(1), filter, after, limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        page
    };
    all_pages(pages).await.into_iter().map(|(_, delivery)| delivery).collect()
}

pub(crate) async fn list_all(store: &dyn Store) -> Vec<Delivery> {
    list_deliveries(store, &DeliveryFilter::default(), 100).await
}

pub(crate) async fn totals(store: &dyn Store, form: FormId) -> Vec<QueueTotals> {
    store.queue_totals(workspace(1).form(form)).await.unwrap()
}

/// Counts the deliveries of the form's integrations by listing them, and fails unless the counters say the same.
pub(crate) async fn assert_counters(store: &dyn Store, form: FormId, now: Timestamp) {
    use DeliveryStatus::{Dead, Delivered, InFlight, Paused, Pending};
    let (queues, all) = (queues_of(store, form).await, list_all(store).await);
    let ours = |one: &&Delivery| queues.iter().any(|queue| queue.integration == one.target.integration);
    let all: Vec<_> = all.iter().filter(ours).collect();
    for (queue, totals) in queues.iter().zip(totals(store, form).await) {
        let count = |statuses: &[DeliveryStatus]| {
            let ours = all.iter().filter(|one| one.target.integration == queue.integration);
            ours.filter(|one| statuses.contains(&one.status)).count() as u64
        };
        assert_eq!((totals.pending, totals.dead), (count(&[Pending, Paused, InFlight]), count(&[Dead])));
    }
    let count = |status| all.iter().filter(|one| one.status == status).count() as u64;
    let hour = |time: Timestamp| time.millis() / 3_600_000;
    let is_recent = |one: &&&Delivery| {
        one.status == Delivered && one.finished_at.is_some_and(|at| hour(at) > hour(now) - 24)
    };
    let delivered = all.iter().filter(is_recent).count() as u64;
    let stats = store.delivery_stats(workspace(1), now).await.unwrap().into_iter().map(|(_, stats)| stats);
    let stats = stats.map(|one| [one.pending, one.in_flight, one.paused, one.dead, one.delivered]);
    let stats = stats.fold([0; 5], |sum, one| std::array::from_fn(|place| sum[place] + one[place]));
    assert_eq!(stats, [count(Pending), count(InFlight), count(Paused), count(Dead), delivered]);
}
