//! Events, recorded in the transaction that causes them, with the deliveries that they cause.

use super::transaction::Tx;
use super::{counters, delivery_rows, submissions};
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::event::{Event, EventType, Subject};
use crate::domain::submission::Submission;
use crate::id::{EventId, FormId, FormRef, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::json::to_text;
use crate::store::{LoadedDelivery, Result};

/// Records that `submissions` were completed, in this order. Their events are made from the submissions.
pub(super) async fn record_completed(tx: &Tx, form: &Form, submissions: &[SubmissionId]) -> Result<()> {
    let subscribers: Vec<_> = form.subscribers(EventType::SubmissionCompleted).collect();
    if subscribers.is_empty() || submissions.is_empty() {
        return Ok(());
    }
    let first = counters::next_events(tx, form.id, submissions.len()).await?;
    let completed = (first..).zip(submissions);
    let new = |(sequence, id): (_, &_)| Delivery::of_completed(form.id, *id, sequence).copies(&subscribers);
    delivery_rows::insert(tx, form.workspace, form.id, &completed.flat_map(new).collect::<Vec<_>>()).await
}

/// Records another event of `form`, with a snapshot, if an integration other than `except` subscribes to it.
pub(super) async fn record(
    tx: &Tx,
    form: &Form,
    (event_type, subject): (EventType, Subject),
    except: Option<IntegrationId>,
    now: Timestamp,
) -> Result<()> {
    let subscribers: Vec<_> = form.subscribers(event_type).filter(|one| Some(one.id) != except).collect();
    if subscribers.is_empty() {
        return Ok(());
    }
    let sequence = counters::next_events(tx, form.id, 1).await?;
    let id = EventId::draw(now.millis(), &*tx.context.random);
    let event = Event { id, event_type, at: now, sequence, form: form.id, subject };
    insert(tx, form.id, &event, "").await?;
    let new = Delivery::of_event(&event).copies(&subscribers);
    delivery_rows::insert(tx, form.workspace, form.id, &new).await
}

/// Inserts an event; `conflict` says what to do if there is one with its id.
pub(super) async fn insert(tx: &Tx, form: FormId, event: &Event, conflict: &str) -> Result<()> {
    let sql = format!("INSERT INTO events (form, id, submission, data) VALUES ($1, $2, $3, $4) {conflict}");
    tx.execute(&sql, &[&form, &event.id, &event.submission(), &to_text(event)?]).await.map(drop)
}

/// Makes the deliveries of a restored submission pending again.
pub(super) async fn resume_submission(
    tx: &Tx,
    workspace: WorkspaceId,
    submission: &Submission,
    now: Timestamp,
) -> Result<()> {
    let mut stored = delivery_rows::lock_of_submission(tx, submission.form, submission.id).await?;
    stored.retain(|stored| stored.delivery.status == DeliveryStatus::Paused);
    tx.wake_after_commit();
    delivery_rows::change(tx, workspace, &stored, |delivery| delivery.clone().pending(now, 0)).await
}

/// Cancels the deliveries that wait for an erased submission, as of its deletion, and erases what was kept to send and the log
/// of attempts: a receiver may have answered with what it got. Its deletion itself is still delivered.
pub(super) async fn cancel_submission(
    tx: &Tx,
    form: FormRef,
    submission: SubmissionId,
    deleted: Timestamp,
) -> Result<()> {
    let stored = delivery_rows::lock_of_submission(tx, form.id, submission).await?;
    let (deletions, canceled): (Vec<_>, Vec<_>) =
        stored.into_iter().partition(|stored| stored.delivery.event_type.is_deletion());
    let deletions: Vec<_> = deletions.iter().map(|stored| stored.delivery.event).collect();
    let events: Vec<_> = canceled.iter().map(|stored| stored.delivery.event).collect();
    delivery_rows::change(tx, form.workspace, &canceled, |delivery| delivery.of_erased(deleted)).await?;
    let sql = "UPDATE deliveries SET body = NULL WHERE workspace = $1 AND event = ANY($2::BYTEA[])";
    tx.execute(sql, &[&form.workspace, &events]).await?;
    let sql = "DELETE FROM attempts WHERE form = $1 AND event = ANY($2::BYTEA[])";
    tx.execute(sql, &[&form.id, &events]).await?;
    let sql = "DELETE FROM events WHERE form = $1 AND submission = $2 AND NOT id = ANY($3::BYTEA[])";
    tx.execute(sql, &[&form.id, &submission, &deletions]).await.map(drop)
}

/// Reads what a delivery sends.
pub(super) async fn load(tx: &Tx, delivery: &Delivery) -> Result<LoadedDelivery> {
    let sql = "SELECT body FROM forms JOIN deliveries ON deliveries.workspace = forms.workspace
               WHERE forms.id = $1 AND deliveries.event = $2 AND deliveries.target = $3";
    let stored = tx.query_opt(sql, &[&delivery.form, &delivery.event, &delivery.target]).await?;
    let body = stored.and_then(|row| row.get(0));
    let (event, is_in_trash) = match delivery.event_type {
        EventType::SubmissionCompleted => read_completed(tx, delivery).await?,
        _ => (read_snapshot(tx, delivery).await?, !trashed(tx, [delivery]).await?.is_empty()),
    };
    Ok(LoadedDelivery { delivery: delivery.clone(), event, is_in_trash, body })
}

pub(super) async fn read_snapshot(tx: &Tx, delivery: &Delivery) -> Result<Option<Event>> {
    let sql = "SELECT data FROM events WHERE form = $1 AND id = $2";
    tx.find_json("an event", sql, &[&delivery.form, &delivery.event]).await
}

async fn read_completed(tx: &Tx, delivery: &Delivery) -> Result<(Option<Event>, bool)> {
    let id = delivery.event.completed_submission();
    let Some(found) = submissions::find_original(tx, delivery.form, id).await? else {
        return Ok((None, false));
    };
    let is_in_trash = found.deleted_at.is_some();
    let event = Event::of_completed(Submission { deleted_at: None, ..found }, delivery.sequence);
    Ok((Some(event), is_in_trash))
}

/// Returns the submissions in the trash that deliveries of a form are about, other than their deletions.
pub(super) async fn trashed<'a>(
    tx: &Tx,
    deliveries: impl IntoIterator<Item = &'a Delivery>,
) -> Result<Vec<SubmissionId>> {
    let mut form = None;
    let mut submissions = Vec::new();
    for delivery in deliveries.into_iter().filter(|delivery| !delivery.event_type.is_deletion()) {
        form = Some(delivery.form);
        submissions.extend(delivery.submission);
    }
    if submissions.is_empty() {
        return Ok(submissions);
    }
    let sql =
        "SELECT id FROM submissions WHERE form = $1 AND id = ANY($2::BYTEA[]) AND deleted_at IS NOT NULL";
    let rows = tx.query(sql, &[&form, &submissions]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
