//! Claims of deliveries: rows that name who has claimed them and until when, so that any number of servers can share the work,
//! and go on with that of one that has died.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::delivery_rows::{self, IS_CLAIMED, StoredDelivery, number, select};
use super::queues::OF_QUEUE;
use super::transaction::{NOW, Params, Tx};
use super::{PostgresStore, cached_rows, queues};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::health::Health;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::id::{DeliveryTarget, EventId};
use crate::store::queue::{DUE_CLASSES, QueueClass};
use crate::store::{Capacity, ClaimedBatch, Claims, Owner, QueueId, Result, Room};

/// Milliseconds after the longest attempt until another server may claim its delivery.
const LEASE_MARGIN: i64 = 60_000;

/// Milliseconds before a queue is looked at again whose deliveries others have claimed.
const LOOK_AGAIN: i64 = 1_000;

/// Milliseconds, by lot, after which a server looks for what others have made due.
const POLL: RangeInclusive<u64> = 800..=1_200;

/// When deliveries may have become due, as far as this server knows.
#[derive(Default)]
pub(super) struct DueSignal {
    changed: Notify,
    /// Queues that are not looked at before a time.
    held: Mutex<HashMap<QueueId, Timestamp>>,
    /// Milliseconds that the last look at all queues took.
    look_ms: AtomicU64,
}

impl DueSignal {
    fn lock(&self) -> MutexGuard<'_, HashMap<QueueId, Timestamp>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the task that carries out deliveries, which then looks at all queues.
    pub(super) fn wake(&self) {
        self.lock().clear();
        self.changed.notify_one();
    }

    /// Waits until this server has made deliveries due, or another one may have; with many queues so much longer that looking at
    /// them takes a fifth of the time.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.changed.notified() => {}
            () = sleep(Duration::from_millis(fastrand::u64(POLL))) => {}
        }
        sleep(Duration::from_millis(4 * self.look_ms.load(Ordering::Relaxed))).await;
    }

    fn hold(&self, queue: QueueId, until: Timestamp) -> Timestamp {
        self.lock().insert(queue, until);
        until
    }

    /// The time before which a queue is not looked at.
    fn held_until(&self, queue: QueueId) -> Timestamp {
        self.lock().get(&queue).copied().unwrap_or(Timestamp::from_millis(i64::MIN))
    }
}

/// A queue with deliveries that nobody has claimed.
struct WaitingQueue {
    id: QueueId,
    form: Arc<Form>,
    health: Health,
    /// When the first one of each [class](DUE_CLASSES) is due.
    due: [Timestamp; 2],
}

/// A queue to claim deliveries of.
struct Wanted {
    queue: QueueId,
    form: Arc<Form>,
    integration: Arc<Integration>,
    due: [Timestamp; 2],
    limit: usize,
}

impl PostgresStore {
    /// See [`claim_due`](crate::store::Deliveries::claim_due).
    pub(super) async fn claim(
        &self,
        owner: Owner,
        now: Timestamp,
        capacity: &mut Capacity<'_>,
    ) -> Result<Claims> {
        let due = &self.context.due;
        let started = Instant::now();
        let waiting = self.read(|tx| async move { waiting_queues(&tx, now).await }).await?;
        due.look_ms.store(started.elapsed().as_millis() as u64, Ordering::Relaxed);
        let (mut claims, mut wanted, mut later) = (Claims::default(), Vec::new(), Vec::new());
        for WaitingQueue { id, form, health, due: times } in waiting {
            let Some(integration) = form.integration(id.integration) else { continue };
            if !integration.enabled || health.paused.is_some() {
                continue;
            }
            let at = times[0].min(times[1]).max(due.held_until(id));
            if at > now {
                later.push(at);
                continue;
            }
            match capacity(id, integration, &health) {
                Room::For(limit) if limit > 0 => {
                    let integration = Arc::new(integration.clone());
                    wanted.push(Wanted { queue: id, form, integration, due: times, limit });
                }
                Room::For(_) | Room::Full => claims.has_full = true,
                Room::After(at) => later.push(due.hold(id, at)),
            }
        }
        let claimed = match wanted.is_empty() {
            true => Vec::new(),
            false => {
                // Queues are locked in this order by all servers.
                wanted.sort_unstable_by_key(|one| one.queue);
                let wanted = &wanted;
                self.write(|tx| async move { claim_wanted(&tx, owner, wanted, now).await }).await?
            }
        };
        for (Wanted { queue, form, integration, limit, .. }, deliveries) in wanted.into_iter().zip(claimed) {
            match deliveries.len() {
                0 => later.push(due.hold(queue, Timestamp::from_millis(now.millis() + LOOK_AGAIN))),
                count if count == limit => later.push(now),
                _ => {}
            }
            if !deliveries.is_empty() {
                claims.batches.push(ClaimedBatch { queue, form, integration, deliveries, changes: None });
            }
        }
        claims.next_due = later.into_iter().min();
        Ok(claims)
    }
}

/// Returns the queues with deliveries that are due at `now`, the one that waits longest first, and then those that are due next.
async fn waiting_queues(tx: &Tx, now: Timestamp) -> Result<Vec<WaitingQueue>> {
    let first = |class: QueueClass| {
        format!(
            "coalesce((SELECT due FROM deliveries WHERE {OF_QUEUE} AND class = {} AND NOT {IS_CLAIMED}
                 ORDER BY at, event, target LIMIT 1), $2)",
            number(class)
        )
    };
    let (deletion, due) = (first(QueueClass::Deletion), first(QueueClass::Due));
    // Of a form in the trash, only deletions are delivered.
    let sql = format!(
        "WITH waiting AS (SELECT queues.workspace, queues.form, queues.integration, queues.data, {deletion} AS deletion,
             CASE WHEN forms.deleted_at IS NULL THEN {due} ELSE $2 END AS due
             FROM queues JOIN forms ON forms.id = queues.form WHERE removed_at IS NULL)
         SELECT workspace, form, integration, data, deletion, due FROM waiting WHERE least(deletion, due) < $2
             AND least(deletion, due) <= coalesce((SELECT min(least(deletion, due)) FROM waiting WHERE least(deletion, due) > $1), $1)
         ORDER BY least(deletion, due)"
    );
    let rows = tx.query(&sql, &[&now, &Timestamp::from_millis(i64::MAX)]).await?;
    let forms: Vec<_> = rows.iter().map(queues::id).map(|queue| queue.workspace.form(queue.form)).collect();
    let forms = cached_rows::forms(tx, &forms).await?;
    let mut waiting = Vec::new();
    for (row, form) in rows.iter().zip(forms) {
        let id = queues::id(row);
        match (form, queues::decode(row, 3)) {
            (Some(form), Ok(queue)) => {
                waiting.push(WaitingQueue { id, form, health: queue.health, due: [row.get(4), row.get(5)] });
            }
            (None, _) => {}
            // A later version may have written the row; the other queues go on.
            (_, Err(error)) => {
                tracing::warn!(integration = %id.integration, %error, "deliveries cannot be claimed");
            }
        }
    }
    Ok(waiting)
}

/// Claims deliveries of each of `wanted`, in their order.
async fn claim_wanted(
    tx: &Tx,
    owner: Owner,
    wanted: &[Wanted],
    now: Timestamp,
) -> Result<Vec<Vec<Delivery>>> {
    let mut claimed = vec![Vec::new(); wanted.len()];
    for (place, class) in DUE_CLASSES.into_iter().enumerate() {
        let finding = wanted.iter().zip(&claimed).map(|(one, earlier): (_, &Vec<Delivery>)| {
            let is_due = one.due[place] <= now;
            find_due(tx, one, class, now, if is_due { one.limit - earlier.len() } else { 0 })
        });
        let found = try_join_all(finding).await?;
        for (claimed, found) in claimed.iter_mut().zip(found) {
            claimed.extend(found);
        }
    }
    lease(tx, owner, wanted, &mut claimed, now).await?;
    Ok(claimed)
}

/// Locks at most `limit` due deliveries of a class that nobody has claimed. Of a queue in order, only those before the first one
/// that is claimed or not due yet; other servers that claim of it wait.
async fn find_due(
    tx: &Tx,
    wanted: &Wanted,
    class: QueueClass,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Delivery>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let is_in_order = wanted.integration.is_in_order();
    let (condition, lock) = match is_in_order {
        true => ("$4::BIGINT IS NOT NULL".to_owned(), "FOR UPDATE"),
        false => (format!("at <= $4 AND NOT {IS_CLAIMED}"), "FOR UPDATE SKIP LOCKED"),
    };
    let sql = select(&format!(
        "deliveries WHERE form = $1 AND integration = $2 AND class = $3 AND {condition}
         ORDER BY at, event, target LIMIT $5 {lock}"
    ));
    let QueueId { form, integration, .. } = wanted.queue;
    let rows = tx.query(&sql, &[&form, &integration, &number(class), &now, &(limit as i64)]).await?;
    let mut found = Vec::new();
    for row in &rows {
        let StoredDelivery { delivery, is_claimed, has_claimant } = match delivery_rows::decode(row) {
            Ok(stored) => stored,
            Err(error) => {
                let integration = wanted.queue.integration;
                tracing::warn!(%integration, %error, "deliveries cannot be claimed");
                return Ok(Vec::new());
            }
        };
        if is_claimed {
            return Ok(Vec::new());
        }
        if is_in_order && delivery.next_attempt_at.is_none_or(|due| due > now) {
            break;
        }
        found.push(Delivery { may_be_sent: has_claimant, ..delivery });
    }
    Ok(found)
}

/// Writes the claims of deliveries, each for as long as an attempt takes and a minute more. Drops from `claimed` those that
/// somebody else has claimed.
async fn lease(
    tx: &Tx,
    owner: Owner,
    wanted: &[Wanted],
    claimed: &mut [Vec<Delivery>],
    now: Timestamp,
) -> Result<()> {
    let (mut workspaces, mut events, mut targets, mut leases) = (vec![], vec![], vec![], vec![]);
    for (wanted, deliveries) in wanted.iter().zip(&*claimed) {
        for delivery in deliveries {
            workspaces.push(wanted.queue.workspace);
            events.push(delivery.event);
            targets.push(delivery.target);
            leases.push(wanted.integration.pace().longest_ms + LEASE_MARGIN);
        }
    }
    let sql = format!(
        "UPDATE deliveries SET owner = $1, leased_until = {NOW} + wanted.lease
         FROM (SELECT unnest($2::BYTEA[]) AS workspace, unnest($3::BYTEA[]) AS event, unnest($4::BYTEA[]) AS target,
             unnest($5::BIGINT[]) AS lease) wanted
         WHERE deliveries.workspace = wanted.workspace AND deliveries.event = wanted.event
             AND deliveries.target = wanted.target AND class < 2 AND due <= $6 AND NOT {IS_CLAIMED}
         RETURNING deliveries.event, deliveries.target"
    );
    let params: Params<'_> = &[&owner.cast_signed(), &workspaces, &events, &targets, &leases, &now];
    let leased = tx.query(&sql, params).await?;
    let leased: HashSet<(EventId, DeliveryTarget)> =
        leased.iter().map(|row| (row.get(0), row.get(1))).collect();
    let is_leased = |delivery: &Delivery| leased.contains(&(delivery.event, delivery.target));
    claimed.iter_mut().for_each(|deliveries| deliveries.retain(is_leased));
    Ok(())
}
