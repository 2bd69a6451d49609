//! Deliveries as readers are shown them: lists, totals and statistics.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::delivery_rows::{self, DELIVERED, IS_CLAIMED, StoredDelivery};
use super::transaction::{Params, Tx};
use super::{Context, PostgresStore, cached_rows, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::id::{DeliveryTarget, EventId, FormId, FormRef, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::queue::QueueClass;
use crate::store::search::{Found, SearchGoal};
use crate::store::{DeliveryFilter, DeliveryRows, QueueTotals, Result, TypeStats};

/// Time after which a search ends early.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Rows that are read at once, at least.
const CHUNK: usize = 200;

const HOUR_MILLIS: i64 = 3_600_000;

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
    let is_match = |row: &&tokio_postgres::Row| row.get::<_, Option<&str>>(2).is_some();
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
        let ids: Vec<_> = found.integrations.iter().map(|one| one.id).collect();
        let counts = "SELECT integration, class, count(*) FROM deliveries
                      WHERE form = $1 AND integration = ANY($2::BYTEA[]) AND class IN (0, 1, 2, 4)
                      GROUP BY integration, class";
        let states = "SELECT integration, data FROM queues WHERE form = $1";
        let ids = &ids;
        let (counts, states) = self
            .read(|tx| async move {
                let params: Params<'_> = &[&form.id, ids];
                tokio::try_join!(tx.query(counts, params), tx.query(states, &params[..1]))
            })
            .await?;
        let mut totals = BTreeMap::<IntegrationId, QueueTotals>::new();
        for row in &states {
            totals.entry(row.get(0)).or_default().health = queues::decode(row, 1)?.health;
        }
        for row in &counts {
            let totals = totals.entry(row.get(0)).or_default();
            let count = row.get::<_, i64>(2).cast_unsigned();
            match row.get::<_, i16>(1) == QueueClass::Dead as i16 {
                true => totals.dead += count,
                false => totals.pending += count,
            }
        }
        Ok(ids.iter().map(|id| totals.remove(id).unwrap_or_default()).collect())
    }

    /// See [`delivery_stats`](crate::store::Deliveries::delivery_stats).
    pub(super) async fn stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        let (context, mut collected) = (&*self.context, BTreeMap::<&'static str, TypeStats>::new());
        let queues = self.read(|tx| async move { count_all(&tx, context, workspace, now).await }).await?;
        for QueueCounts { form, integration, health, counts } in queues {
            let Some(integration) = form.integration(integration) else { continue };
            let stats = collected.entry(integration.type_name()).or_default();
            stats.paused_integrations += u64::from(health.paused.is_some());
            let is_paused = form.deleted_at.is_some() || !integration.enabled || health.paused.is_some();
            for ClassCount { class, count, claimed, due } in counts {
                let waiting = count - claimed;
                stats.in_flight += claimed;
                match class {
                    DELIVERED => stats.delivered += count,
                    _ if class == QueueClass::Dead as i16 => stats.dead += count,
                    _ if is_paused || class == QueueClass::Paused as i16 => stats.paused += waiting,
                    _ => {
                        stats.pending += waiting;
                        stats.oldest_due_at = stats.oldest_due_at.into_iter().chain(due).min();
                    }
                }
            }
        }
        Ok(collected.into_iter().collect())
    }
}

/// The deliveries of a queue, counted by class.
struct QueueCounts {
    form: Arc<Form>,
    integration: IntegrationId,
    health: Health,
    counts: Vec<ClassCount>,
}

struct ClassCount {
    class: i16,
    count: u64,
    /// Those of them that are claimed.
    claimed: u64,
    /// When the first of the others was due.
    due: Option<Timestamp>,
}

/// Counts the deliveries of a workspace: those delivered within 24 hours, by the hour, and those that are neither delivered nor
/// ended otherwise.
async fn count_all(
    tx: &Tx,
    context: &Context,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<Vec<QueueCounts>> {
    let of_queue = "deliveries.form = queues.form AND deliveries.integration = queues.integration";
    let sql = format!(
        "SELECT queues.form, queues.integration, counts.class, counts.count, counts.claimed, counts.due
         FROM queues CROSS JOIN LATERAL (
             SELECT class, count(*) AS count, count(*) FILTER (WHERE {IS_CLAIMED}) AS claimed,
                 min(due) FILTER (WHERE NOT {IS_CLAIMED}) AS due
             FROM deliveries WHERE {of_queue} AND class IN (0, 1, 2, 4) GROUP BY class
             UNION ALL SELECT 5::SMALLINT, count(*), 0, NULL FROM deliveries WHERE {of_queue} AND class = 5 AND at >= $2) counts
         WHERE queues.workspace = $1 AND removed_at IS NULL"
    );
    let first_hour = now.millis().div_euclid(HOUR_MILLIS) - 23;
    let mut counts = HashMap::<(FormId, IntegrationId), Vec<ClassCount>>::new();
    for row in tx.query(&sql, &[&workspace, &(first_hour * HOUR_MILLIS)]).await? {
        counts.entry((row.get(0), row.get(1))).or_default().push(ClassCount {
            class: row.get(2),
            count: row.get::<_, i64>(3).cast_unsigned(),
            claimed: row.get::<_, i64>(4).cast_unsigned(),
            due: row.get(5),
        });
    }
    let sql =
        "SELECT workspace, form, integration, data FROM queues WHERE workspace = $1 AND removed_at IS NULL";
    let rows = tx.query(sql, &[&workspace]).await?;
    let refs: Vec<_> = rows.iter().map(|row| workspace.form(queues::id(row).form)).collect();
    let forms = cached_rows::forms(tx, context, &refs).await?;
    let mut all = Vec::new();
    for (row, form) in rows.iter().zip(forms) {
        let (id, health) = (queues::id(row), queues::decode(row, 3)?.health);
        let counts = counts.remove(&(id.form, id.integration)).unwrap_or_default();
        all.extend(form.map(|form| QueueCounts { form, integration: id.integration, health, counts }));
    }
    Ok(all)
}
