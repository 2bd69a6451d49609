//! Forms with integrations, and a runner that delivers nothing.

use std::sync::Arc;

use forms::clock::Timestamp;
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::delivery::{Delivery, DeliveryError, DeliveryStatus};
use forms::domain::integration::event::Event;
use forms::domain::revision::ExpectedRevision;
use forms::id::{EventId, FormId, SubmissionId};
use forms::store::{
    AttemptDecision, BegunAttempt, DeliveryFilter, DueDelivery, FinishedAttempt, NewAttempt, NewSubmission,
    QueueBatch, QueueId, QueueState, StepResult, Store,
};

use super::{at, patch, published_form, update_form, workspace};

/// Milliseconds after which an attempt that has begun is taken for interrupted.
pub(crate) const LEASE: i64 = 60_000;

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
    let change = patch(&format!(r#"{{"integrations":[{}]}}"#, definitions.join(",")));
    change_form(store, form, change, millis).await;
    let found = store.find_form(workspace(1), form).await.unwrap().unwrap();
    let queue = |integration| QueueId { workspace: workspace(1), form, integration };
    found.integrations.iter().map(|one| queue(one.id)).collect()
}

pub(crate) async fn change_form(
    store: &dyn Store,
    form: FormId,
    change: forms::domain::form::definition::FormPatch,
    millis: i64,
) {
    let step = update_form(store, workspace(1), form, change, ExpectedRevision::Any, at(millis)).await;
    assert!(matches!(step, StepResult::Done(_)), "{step:?}");
}

/// Stores a submission, and owes it to the form's integrations if `notify`.
pub(crate) async fn submit_with(store: &dyn Store, form: FormId, millis: i64, notify: bool) -> SubmissionId {
    loop {
        let revision = store.find_form(workspace(1), form).await.unwrap().unwrap().revision;
        let new = NewSubmission {
            form,
            checked_revision: revision,
            checked_version: 1,
            answers: r#"{"q1":"soup"}"#,
            metadata: None,
            notify,
            idempotency_key: None,
        };
        match store.accept_submission(workspace(1), new, at(millis)).await.unwrap() {
            StepResult::Done(id) => return id,
            StepResult::Recheck => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Stores `count` submissions concurrently, so that they share outbox rows; returns their ids in ascending order.
pub(crate) async fn submit_many(
    store: &Arc<dyn Store>,
    form: FormId,
    count: usize,
    millis: i64,
) -> Vec<SubmissionId> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let store = Arc::clone(store);
        tasks.spawn(async move { submit_with(&*store, form, millis, true).await });
    }
    let mut ids = tasks.join_all().await;
    ids.sort_unstable();
    ids
}

pub(crate) fn completed(ids: &[SubmissionId]) -> Vec<EventId> {
    ids.iter().map(|id| EventId::of_completed(*id)).collect()
}

pub(crate) async fn load(store: &dyn Store, queue: QueueId, millis: i64, limit: usize) -> QueueBatch {
    store.load_queue(queue, at(millis), limit).await.unwrap().expect("the queue exists")
}

/// The events of the deliveries that are due.
pub(crate) async fn due_events(store: &dyn Store, queue: QueueId, millis: i64) -> Vec<EventId> {
    load(store, queue, millis, 100).await.due.iter().map(|due| due.delivery.event).collect()
}

/// The body that a delivery has in these tests.
pub(crate) fn body(delivery: &Delivery) -> Vec<u8> {
    format!("{} to {}", delivery.event, delivery.integration).into_bytes()
}

pub(crate) fn decide(
    due: &[DueDelivery],
    decision: impl Fn(&Delivery) -> AttemptDecision,
) -> Vec<NewAttempt> {
    let attempt =
        |due: &DueDelivery| NewAttempt { delivery: due.delivery.clone(), decision: decision(&due.delivery) };
    due.iter().map(attempt).collect()
}

pub(crate) fn send(due: &[DueDelivery]) -> Vec<NewAttempt> {
    decide(due, |delivery| AttemptDecision::Send(body(delivery)))
}

pub(crate) async fn begin(
    store: &dyn Store,
    queue: QueueId,
    attempts: Vec<NewAttempt>,
    millis: i64,
) -> Vec<BegunAttempt> {
    store.begin_attempts(queue, attempts, at(millis), at(millis + LEASE)).await.unwrap()
}

pub(crate) async fn finish(
    store: &dyn Store,
    queue: QueueId,
    begun: Vec<BegunAttempt>,
    outcome: Outcome,
    millis: i64,
) -> QueueState {
    let finished = begun.into_iter().map(|one| FinishedAttempt {
        delivery: one.delivery,
        started_at: at(millis),
        report: report(outcome.clone()),
        jitter: 1.0,
    });
    store.finish_attempts(queue, finished.collect(), None, at(millis)).await.unwrap()
}

pub(crate) fn report(outcome: Outcome) -> SendReport {
    SendReport::new(outcome, 7)
}

pub(crate) fn error() -> DeliveryError {
    ErrorCode::Timeout.error("no answer")
}

pub(crate) fn failure() -> Outcome {
    Outcome::Retryable { error: error(), is_slow: false }
}

/// Delivers what is due, `batch` at a time; returns the events in the order of their delivery.
pub(crate) async fn deliver_due(store: &dyn Store, queue: QueueId, millis: i64, batch: usize) -> Vec<Event> {
    let mut delivered = Vec::new();
    loop {
        let loaded = load(store, queue, millis, batch).await;
        assert!(loaded.due.len() <= batch);
        if loaded.due.is_empty() && loaded.next_due.is_none_or(|due| due > at(millis)) {
            return delivered;
        }
        let begun = begin(store, queue, send(&loaded.due), millis).await;
        assert_eq!(begun.len(), loaded.due.len());
        finish(store, queue, begun, Outcome::Delivered, millis).await;
        delivered.extend(loaded.due.into_iter().map(|due| due.event.expect("nothing was erased")));
    }
}

pub(crate) async fn status(store: &dyn Store, delivery: &Delivery) -> DeliveryStatus {
    let found = store.find_delivery(workspace(1), delivery.id()).await.unwrap();
    found.expect("the delivery exists").status
}

/// Lists all deliveries that match `filter` by pages of `limit`.
pub(crate) async fn list_deliveries(
    store: &dyn Store,
    filter: &DeliveryFilter,
    limit: usize,
) -> Vec<Delivery> {
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_deliveries(workspace(1), filter, after, limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        seen.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return seen;
        }
    }
}

/// The queues that wait, with the time from which each is due in milliseconds.
pub(crate) async fn waiting_queues(store: &dyn Store) -> Vec<(QueueId, i64)> {
    let queues = store.list_queues().await.unwrap();
    let millis = |time: Timestamp| time.millis().saturating_sub(at(0).millis());
    queues.into_iter().map(|(queue, due)| (queue, millis(due))).collect()
}
