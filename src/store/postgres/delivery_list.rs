//! Deliveries as readers are shown them: lists, totals and statistics.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Row;

use super::delivery_rows::{self, IS_CLAIMED, StoredDelivery};
use super::transaction::{Params, Tx};
use super::{Context, PostgresStore, cached_rows, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::id::{DeliveryTarget, EventId, FormId, FormRef, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::search::{Found, SearchGoal};
use crate::store::{DeliveryFilter, DeliveryRows, QueueTotals, Result, TypeStats};

/// Time after which a search ends early.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Rows that are read at once, at least.
const CHUNK: usize = 200;

const HOUR_MILLIS: i64 = 3_600_000;

/// The deliveries of a row of `queues`.
const OF_QUEUE: &str = "deliveries.form = queues.form AND deliveries.integration = queues.integration";

/// A row of a search: its position, and the delivery if it matches.
type Examined = (Vec<u8>, Option<(Arc<Form>, Delivery)>);

/// Returns deliveries of a workspace as readers are shown them, with their forms; `None` of a form that is gone.
pub(super) async fn show(
    tx: &Tx,
    context: &Context,
    workspace: WorkspaceId,
    stored: Vec<StoredDelivery>,
) -> Result<Vec<Option<(Arc<Form>, Delivery)>>> {
    let refs: Vec<_> = stored.iter().map(|stored| workspace.form(stored.delivery.form)).collect();
    let mut ids: Vec<_> = refs.iter().map(|form| form.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let params: Params<'_> = &[&ids];
    let sql = "SELECT form, integration, data FROM queues WHERE form = ANY($1::BYTEA[])";
    let (forms, rows) = tokio::try_join!(cached_rows::forms(tx, context, &refs), tx.query(sql, params))?;
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
fn position(event: EventId, target: DeliveryTarget) -> Vec<u8> {
    [&event.to_bytes()[..], &target.to_bytes()].concat()
}

fn start_of(time: Timestamp) -> EventId {
    EventId::of_completed(SubmissionId::first_of(time.millis()))
}

/// Examines the deliveries from the time of the filter on, before `below`, newest first.
async fn examine(
    tx: &Tx,
    context: &Context,
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
    let mut shown = show(tx, context, workspace, stored).await?.into_iter();
    let has_status =
        |(_, shown): &(_, Delivery)| filter.status.is_empty() || filter.status.contains(&shown.status);
    let examined = rows.iter().map(|row| {
        let found = Some(row).filter(is_match).and_then(|_| shown.next()).flatten();
        (position(row.get(0), row.get(1)), found.filter(has_status))
    });
    Ok(examined.collect())
}

impl PostgresStore {
    /// See [`list_deliveries`](crate::store::Deliveries::list_deliveries).
    pub(super) async fn search_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows> {
        let until = filter.until.map(|until| position(start_of(until), DeliveryTarget::default()));
        // Longer than any position, and above all of them.
        let mut below = after.or(until).unwrap_or(vec![u8::MAX; 25]);
        let (context, deadline) = (&*self.context, Instant::now() + MAX_TIME);
        let mut found = Found::new(SearchGoal::Page(limit));
        while !found.is_done() && Instant::now() < deadline {
            let chunk = (limit + 1 - found.len()).max(CHUNK);
            let from = &below;
            let rows = self
                .read(|tx| async move { examine(&tx, context, workspace, filter, from, chunk as i64).await })
                .await?;
            let is_last = rows.len() < chunk;
            for (position, matching) in rows {
                if !found.take(position, matching.map(|row| (row, 0))) {
                    break;
                }
            }
            if is_last {
                found.end();
            }
            below = found.last().cloned().unwrap_or(below);
        }
        Ok(found.into_page())
    }

    /// See [`queue_totals`](crate::store::Deliveries::queue_totals).
    pub(super) async fn totals(&self, form: FormRef) -> Result<Vec<QueueTotals>> {
        let Some(found) = self.batchers.forms.ask(form).await? else { return Ok(Vec::new()) };
        let sql = &format!(
            "SELECT integration, data, (SELECT count(*) FROM deliveries WHERE {OF_QUEUE} AND class < 3),
                 (SELECT count(*) FROM deliveries WHERE {OF_QUEUE} AND class = 3)
             FROM queues WHERE form = $1"
        );
        let mut totals = HashMap::<IntegrationId, QueueTotals>::new();
        for row in self.read(|tx| async move { tx.query(sql, &[&form.id]).await }).await? {
            let (health, [pending, dead]) =
                (queues::decode(&row, 1)?.health, [2, 3].map(|at| count(&row, at)));
            totals.insert(row.get(0), QueueTotals { health, pending, dead });
        }
        Ok(found.integrations.iter().map(|one| totals.remove(&one.id).unwrap_or_default()).collect())
    }

    /// See [`delivery_stats`](crate::store::Deliveries::delivery_stats).
    pub(super) async fn stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        let context = &*self.context;
        let (rows, forms) =
            self.scan(|tx| async move { count_all(&tx, context, workspace, now).await }).await?;
        let mut collected = BTreeMap::<&'static str, TypeStats>::new();
        for (row, form) in rows.iter().zip(forms) {
            let Some(form) = form else { continue };
            let Some(integration) = form.integration(row.get(2)) else { continue };
            let is_paused = queues::decode(row, 3)?.health.paused.is_some();
            let [all, claimed, paused, dead, delivered] = [4, 5, 7, 8, 9].map(|at| count(row, at));
            let stats = collected.entry(integration.type_name()).or_default();
            stats.in_flight += claimed;
            stats.paused += paused;
            stats.dead += dead;
            stats.delivered += delivered;
            stats.paused_integrations += u64::from(is_paused);
            if form.deleted_at.is_some() || !integration.enabled || is_paused {
                stats.paused += all - claimed;
                continue;
            }
            stats.pending += all - claimed;
            stats.oldest_due_at =
                stats.oldest_due_at.into_iter().chain(row.get::<_, Option<Timestamp>>(6)).min();
        }
        Ok(collected.into_iter().collect())
    }
}

fn count(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).cast_unsigned()
}

/// Counts the deliveries of each queue of a workspace: all that wait and those of them that are claimed, with the time when the
/// first of the others was due; paused and dead ones; and those delivered within 24 hours, by the hour.
async fn count_all(
    tx: &Tx,
    context: &Context,
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
    let forms = cached_rows::forms(tx, context, &refs).await?;
    Ok((rows, forms))
}
