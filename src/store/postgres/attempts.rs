//! How claimed attempts ended, and what follows for their deliveries and the integration.

use std::collections::HashMap;

use super::transaction::Tx;
use super::{confirmations, delivery_rows, events, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::{Attempt, SendReport};
use crate::domain::delivery::health::Health;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::event::{EventType, Subject};
use crate::store::json::to_text;
use crate::store::queue::StoredQueue;
use crate::store::step::{Step, Stop};
use crate::store::{AttemptEnd, FinishedAttempt, QueueId, Result};

/// Milliseconds within which the time of the last success is not written again: otherwise attempts that succeed at the same
/// time would wait for each other.
const SUCCESS_PRECISION: i64 = 1_000;

/// Lists the attempts of a delivery, oldest first.
pub(super) async fn list(tx: &Tx, of: &Delivery) -> Result<Vec<Attempt>> {
    let sql = "SELECT data FROM attempts WHERE form = $1 AND event = $2 AND target = $3 ORDER BY number";
    tx.list_json("an attempt", sql, &[&of.form, &of.event, &of.target]).await
}

/// Records the ends of attempts in their deliveries and in the log. Returns the deliveries that were sent, as they are now.
pub(super) async fn record<'a>(
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
pub(super) async fn judge(
    tx: &Tx,
    (form, integration): (&Form, &Integration),
    sent: &[(Delivery, &SendReport)],
    is_locked: bool,
    now: Timestamp,
) -> Step<Health> {
    let (id, queue) = (integration.id, form.reference().queue(integration.id));
    let after = |before: &Health| {
        sent.iter().fold(before.clone(), |health, (new, report)| health.after(new, report, now))
    };
    let before = queues::read(tx, queue).await?.health;
    let health = after(&before);
    if is_same(&before, &health) {
        return Ok(health);
    }
    let state = queues::lock(tx, queue).await?;
    let before = state.health.clone();
    let state = StoredQueue { health: after(&before), ..state };
    if let Some(reason) = state.health.paused.clone().filter(|_| before.paused.is_none()) {
        if !is_locked {
            return Err(Stop::Recheck);
        }
        let subject = Subject::Integration { id, name: integration.name.clone(), reason };
        events::record(tx, form, (EventType::IntegrationDisabled, subject), Some(id), now).await?;
    }
    queues::put(tx, queue, &state).await?;
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
