//! Deliveries as readers are shown them: lists, totals and statistics.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row;

use super::delivery_rows::{self, IS_CLAIMED, StoredDelivery};
use super::queues::OF_QUEUE;
use super::transaction::{Params, Tx};
use super::{cached_rows, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::id::{DeliveryTarget, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::{DeliveryFilter, FormDelivery, Result};

const HOUR_MILLIS: i64 = 3_600_000;

/// A row of a search: its position, and the delivery if it matches.
type Examined = (Vec<u8>, Option<FormDelivery>);

/// Returns deliveries of a workspace as readers are shown them, with their forms; `None` of a form that is gone.
pub(super) async fn show(
    tx: &Tx,
    workspace: WorkspaceId,
    stored: Vec<StoredDelivery>,
) -> Result<Vec<Option<FormDelivery>>> {
    let refs: Vec<_> = stored.iter().map(|stored| workspace.form(stored.delivery.form)).collect();
    let mut ids: Vec<_> = refs.iter().map(|form| form.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let params: Params<'_> = &[&ids];
    let sql = "SELECT form, integration, data FROM queues WHERE form = ANY($1::BYTEA[])";
    let (forms, rows) = tokio::try_join!(cached_rows::forms(tx, &refs), tx.query(sql, params))?;
    let mut health = HashMap::<(FormId, IntegrationId), Health>::new();
    for row in rows {
        health.insert((row.get(0), row.get(1)), queues::decode(&row, 2)?.health);
    }
    let shown = stored.into_iter().zip(forms).map(|(StoredDelivery { delivery, is_claimed, .. }, form)| {
        let form = form?;
        let integration = delivery.target.integration;
        let is_in_flight = is_claimed && delivery.is_waiting() && form.integration(integration).is_some();
        let shown = match health.get(&(form.id, integration)) {
            _ if is_in_flight => Delivery { status: DeliveryStatus::InFlight, ..delivery },
            Some(health) => delivery.shown(&form, health),
            None => delivery.shown(&form, &Health::default()),
        };
        Some((form, shown))
    });
    Ok(shown.collect())
}

/// The position of a delivery, or of where those begin that are older than a time.
pub(super) fn position(event: EventId, target: DeliveryTarget) -> Vec<u8> {
    [&event.to_bytes()[..], &target.to_bytes()].concat()
}

pub(super) fn start_of(time: Timestamp) -> EventId {
    EventId::of_completed(SubmissionId::first_of(time.millis()))
}

/// Examines the deliveries from the time of the filter on, before `below`, newest first.
pub(super) async fn examine(
    tx: &Tx,
    workspace: WorkspaceId,
    filter: &DeliveryFilter,
    below: &[u8],
    limit: i64,
) -> Result<Vec<Examined>> {
    // Events about a submission are not earlier than the submission.
    let submitted = filter.submission.map(|id| Timestamp::from_millis(id.millis()));
    let since = filter.since.into_iter().chain(submitted).max().map_or(EventId::ZERO, start_of);
    let (event, target) = below.split_at(below.len().min(16));
    // The position of each row is needed, but only the data of those that match.
    let sql = format!(
        "SELECT event, target, CASE WHEN ($6::BYTEA IS NULL OR form = $6)
             AND ($7::BYTEA[] IS NULL OR form = ANY($7::BYTEA[])) AND ($8::BYTEA IS NULL OR integration = $8)
             AND ($9::BYTEA IS NULL OR submission = $9) THEN data END, owner IS NOT NULL, {IS_CLAIMED}
         FROM deliveries WHERE workspace = $1 AND event >= $2 AND (event, target) < ($3, $4)
         ORDER BY event DESC, target DESC LIMIT $5"
    );
    let DeliveryFilter { form, forms, integration, submission, .. } = filter;
    let params: Params<'_> =
        &[&workspace, &since, &event, &target, &limit, form, forms, integration, submission];
    let rows = tx.query(&sql, params).await?;
    let is_match = |row: &&Row| row.get::<_, Option<&str>>(2).is_some();
    let stored = rows.iter().filter(is_match).map(delivery_rows::decode).collect::<Result<Vec<_>>>()?;
    let mut shown = show(tx, workspace, stored).await?.into_iter();
    let has_status =
        |(_, shown): &(_, Delivery)| filter.status.is_empty() || filter.status.contains(&shown.status);
    let examined = rows.iter().map(|row| {
        let found = Some(row).filter(is_match).and_then(|_| shown.next()).flatten();
        (position(row.get(0), row.get(1)), found.filter(has_status))
    });
    Ok(examined.collect())
}

pub(super) fn count(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).cast_unsigned()
}

/// Counts the deliveries of each queue of a workspace: all that wait and those of them that are claimed, with the time when the
/// first of the others was due; paused and dead ones; and those delivered within 24 hours, by the hour.
pub(super) async fn count_all(
    tx: &Tx,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<(Vec<Row>, Vec<Option<Arc<Form>>>)> {
    let counted = |condition| format!("(SELECT count(*) FROM deliveries WHERE {OF_QUEUE} AND {condition})");
    let [paused, dead, delivered] = ["class = 2", "class = 3", "class = 5 AND at >= $2"].map(counted);
    let sql = format!(
        "SELECT workspace, form, integration, data, waiting.total, waiting.claimed, waiting.due, {paused}, {dead}, {delivered}
         FROM queues CROSS JOIN LATERAL (SELECT count(*) AS total, count(*) FILTER (WHERE {IS_CLAIMED}) AS claimed,
             min(due) FILTER (WHERE NOT {IS_CLAIMED}) AS due FROM deliveries WHERE {OF_QUEUE} AND class < 2) waiting
         WHERE workspace = $1 AND removed_at IS NULL"
    );
    let first_hour = now.millis().div_euclid(HOUR_MILLIS) - 23;
    let rows = tx.query(&sql, &[&workspace, &(first_hour * HOUR_MILLIS)]).await?;
    let refs: Vec<_> = rows.iter().map(|row| workspace.form(row.get(1))).collect();
    let forms = cached_rows::forms(tx, &refs).await?;
    Ok((rows, forms))
}
