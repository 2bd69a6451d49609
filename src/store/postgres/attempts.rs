//! How claimed attempts ended, and what follows for their deliveries and the integration.

use std::collections::HashMap;

use super::counters::{self, Lock};
use super::transaction::Tx;
use super::{Context, PostgresStore, cached_rows, confirmations, delivery_rows, events, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::delivery::health::Health;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::event::{EventType, Subject};
use crate::store::json::to_text;
use crate::store::queue::StoredQueue;
use crate::store::step::{Step, Stop};
use crate::store::{AttemptEnd, FinishedAttempt, QueueId, Result, StepResult};

/// Milliseconds within which the time of the last success is not written again: otherwise attempts that succeed at the same
/// time would wait for each other.
const SUCCESS_PRECISION: i64 = 1_000;

impl PostgresStore {
    /// See [`finish`](crate::store::Deliveries::finish).
    pub(super) async fn finish_attempts(
        &self,
        queue: QueueId,
        finished: &[FinishedAttempt],
        now: Timestamp,
    ) -> Result<Health> {
        let (context, schedule) = (&*self.context, self.retry_schedule.as_deref());
        // The form is locked before its deliveries, and only for the few attempts that pause the integration.
        let mut is_locked = false;
        loop {
            let step = |tx: Tx| async move {
                if is_locked {
                    counters::lock(&tx, queue.form, Lock::Events).await?;
                }
                let form = cached_rows::form(&tx, context, queue.workspace.form(queue.form)).await?;
                let found =
                    form.as_deref().and_then(|form| Some((form, form.integration(queue.integration)?)));
                let Some((form, integration)) = found else { return Ok(Health::default()) };
                let schedule = integration.retry_schedule(schedule);
                let sent = record(&tx, queue, schedule, finished, now).await?;
                judge(&tx, context, (form, integration), &sent, is_locked, now).await
            };
            if let StepResult::Done(health) = self.step(step).await? {
                return Ok(health);
            }
            is_locked = true;
        }
    }
}

/// Records the ends of attempts in their deliveries and in the log. Returns the deliveries that were sent, as they are now.
async fn record<'a>(
    tx: &Tx,
    queue: QueueId,
    schedule: &[i64],
    finished: &'a [FinishedAttempt],
    now: Timestamp,
) -> Result<Vec<(Delivery, &'a SendReport)>> {
    let keys = finished.iter().map(|attempt| (attempt.delivery.event, attempt.delivery.target));
    let stored = delivery_rows::lock(tx, queue.workspace, keys).await?;
    let stored: HashMap<_, _> =
        stored.into_iter().map(|one| ((one.delivery.event, one.delivery.target), one.delivery)).collect();
    let not_sent = finished.iter().filter(|attempt| attempt.result == AttemptEnd::NotSent);
    let trashed = events::trashed(tx, not_sent.map(|attempt| &attempt.delivery)).await?;
    let (mut changed, mut sent, mut log) = (Vec::new(), Vec::new(), Vec::new());
    for attempt in finished {
        let found = stored.get(&(attempt.delivery.event, attempt.delivery.target));
        let Some(current) = found.filter(|current| attempt.is_of(current)) else { continue };
        let is_in_trash = current.submission.is_some_and(|submission| trashed.contains(&submission));
        let new = attempt.result.apply(current, schedule, is_in_trash, now);
        let new = new.unwrap_or_else(|| current.clone());
        let mut body_sent = None;
        if let AttemptEnd::Sent { started_at, report, body, mailbox, .. } = &attempt.result {
            log.push(current.log_attempt(*started_at, report));
            if let Some(mailbox) = mailbox {
                confirmations::record_attempt(tx, &new, *mailbox, now).await?;
            }
            sent.push((new.clone(), &**report));
            body_sent = body.as_deref();
        }
        changed.push((new, body_sent));
    }
    delivery_rows::update(tx, queue.workspace, &changed).await?;
    let events: Vec<_> = sent.iter().map(|(delivery, _)| delivery.event).collect();
    let targets: Vec<_> = sent.iter().map(|(delivery, _)| delivery.target).collect();
    let numbers: Vec<_> = log.iter().map(|attempt| i64::from(attempt.number)).collect();
    let log = log.iter().map(to_text).collect::<Result<Vec<_>>>()?;
    if !log.is_empty() {
        let sql = "INSERT INTO attempts (form, event, target, number, data)
                   SELECT $1, unnest($2::BYTEA[]), unnest($3::BYTEA[]), unnest($4::BIGINT[]), unnest($5::TEXT[])";
        tx.execute(sql, &[&queue.form, &events, &targets, &numbers, &log]).await?;
    }
    Ok(sent)
}

/// Applies the outcomes of attempts to the health of an integration. If that pauses it, the form has to be locked.
async fn judge(
    tx: &Tx,
    context: &Context,
    (form, integration): (&Form, &Integration),
    sent: &[(Delivery, &SendReport)],
    is_locked: bool,
    now: Timestamp,
) -> Step<Health> {
    let (of, id) = (form.id, integration.id);
    let after = |before: &Health| {
        sent.iter().fold(before.clone(), |health, (new, report)| health.after(new, report, now))
    };
    let before = queues::read(tx, of, id).await?.health;
    let health = after(&before);
    if is_same(&before, &health) {
        return Ok(health);
    }
    let state = queues::lock(tx, of, id).await?;
    let before = state.health.clone();
    let state = StoredQueue { health: after(&before), ..state };
    if let Some(reason) = state.health.paused.clone().filter(|_| before.paused.is_none()) {
        if !is_locked {
            return Err(Stop::Recheck);
        }
        let subject = Subject::Integration { id, name: integration.name.clone(), reason };
        events::record(tx, context, form, (EventType::IntegrationDisabled, subject), Some(id), now).await?;
    }
    queues::put(tx, of, id, &state).await?;
    Ok(state.health)
}

/// Whether `after` need not be written: nothing differs but the time of the last success, and that a little.
fn is_same(before: &Health, after: &Health) -> bool {
    let times = before.last_success_at.zip(after.last_success_at);
    let is_near = |(before, after): (Timestamp, Timestamp)| {
        (0..SUCCESS_PRECISION).contains(&(after.millis() - before.millis()))
    };
    before == after
        || Health { last_success_at: before.last_success_at, ..after.clone() } == *before
            && times.is_some_and(is_near)
}
