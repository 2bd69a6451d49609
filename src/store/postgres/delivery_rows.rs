//! Rows of deliveries.

use tokio_postgres::Row;

use super::transaction::{Params, Tx};
use crate::clock::Timestamp;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::id::{DeliveryId, DeliveryTarget, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::queue::{QueueClass, decode_delivery, encode_delivery};
use crate::store::{Result, StoreError};

/// Whether a delivery is claimed.
pub(super) const IS_CLAIMED: &str = "(leased_until IS NOT NULL
    AND leased_until > (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)";

/// A delivery as it is stored.
#[derive(Debug, Clone)]
pub(super) struct StoredDelivery {
    pub(super) delivery: Delivery,
    pub(super) is_claimed: bool,
    /// Whether its last claim has neither ended with an outcome nor been released.
    pub(super) has_claimant: bool,
}

pub(super) fn decode(row: &Row) -> Result<StoredDelivery> {
    Ok(StoredDelivery {
        delivery: decode_delivery(row.get(0), row.get(1), row.get::<_, &str>(2).as_bytes())?,
        is_claimed: row.get(4),
        has_claimant: row.get(3),
    })
}

/// Selects deliveries; `rest` is what follows `FROM`.
pub(super) fn select(rest: &str) -> String {
    format!(
        "SELECT deliveries.event, deliveries.target, deliveries.data, deliveries.owner IS NOT NULL, {IS_CLAIMED} FROM {rest}"
    )
}

/// Reads the deliveries that [`select`] selects.
pub(super) async fn query(tx: &Tx, rest: &str, params: Params<'_>) -> Result<Vec<StoredDelivery>> {
    tx.query(&select(rest), params).await?.iter().map(decode).collect()
}

/// The number of a class in its column: those that are counted come first.
pub(super) fn number(class: QueueClass) -> i16 {
    match class {
        QueueClass::Deletion => 0,
        QueueClass::Due => 1,
        QueueClass::Paused => 2,
        QueueClass::Dead => 3,
        QueueClass::Ended => 4,
    }
}

/// The number of those that were delivered, which are counted apart from others that have ended.
const DELIVERED: i16 = 5;

/// The last one of the numbers that `class` has.
pub(super) fn last_number(class: QueueClass) -> i16 {
    if class == QueueClass::Ended { DELIVERED } else { number(class) }
}

/// Deliveries by column.
#[derive(Default)]
struct Columns {
    events: Vec<EventId>,
    targets: Vec<DeliveryTarget>,
    integrations: Vec<IntegrationId>,
    submissions: Vec<Option<SubmissionId>>,
    classes: Vec<i16>,
    times: Vec<Timestamp>,
    due: Vec<Option<Timestamp>>,
    waits: Vec<i64>,
    data: Vec<String>,
}

impl Columns {
    fn of<'a>(deliveries: impl IntoIterator<Item = &'a Delivery>) -> Result<Self> {
        let mut columns = Self::default();
        let not_text = |error| StoreError::Io(std::io::Error::other(error));
        for one in deliveries {
            columns.events.push(one.event);
            columns.targets.push(one.target);
            columns.integrations.push(one.target.integration);
            columns.submissions.push(one.submission);
            columns.classes.push(match one.status {
                DeliveryStatus::Delivered => DELIVERED,
                _ => number(QueueClass::of(one)),
            });
            columns.times.push(QueueClass::of(one).time_of(one));
            columns.due.push(one.next_attempt_at);
            columns.waits.push(one.wait_ms);
            columns.data.push(String::from_utf8(encode_delivery(one)?).map_err(not_text)?);
        }
        Ok(columns)
    }
}

/// Inserts new deliveries of a form. Once they are committed, whoever carries out deliveries is woken.
pub(super) async fn insert(tx: &Tx, workspace: WorkspaceId, form: FormId, new: &[Delivery]) -> Result<()> {
    let columns = Columns::of(new)?;
    let Columns { events, targets, integrations, submissions, classes, times, due, waits, data } = &columns;
    let sql = "INSERT INTO deliveries (workspace, form, event, target, integration, submission, class, at, due, wait_ms, data)
               SELECT $1, $2, unnest($3::BYTEA[]), unnest($4::BYTEA[]), unnest($5::BYTEA[]), unnest($6::BYTEA[]),
                   unnest($7::SMALLINT[]), unnest($8::BIGINT[]), unnest($9::BIGINT[]), unnest($10::BIGINT[]),
                   unnest($11::TEXT[])";
    tx.wake_after_commit();
    tx.execute(
        sql,
        &[&workspace, &form, events, targets, integrations, submissions, classes, times, due, waits, data],
    )
    .await
    .map(drop)
}

/// Writes locked deliveries, each with the body of its first attempt if it has just been made, and ends their claims. A body is
/// kept until the delivery has ended, but for a dead one, which may be sent again.
pub(super) async fn update(
    tx: &Tx,
    workspace: WorkspaceId,
    changed: &[(Delivery, Option<&[u8]>)],
) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(changed.iter().map(|(delivery, _)| delivery))?;
    let Columns { events, targets, classes, times, due, waits, data, .. } = &columns;
    let bodies: Vec<_> = changed.iter().map(|(_, body)| *body).collect();
    let sql = "UPDATE deliveries SET class = new.class, at = new.at, due = new.due, wait_ms = new.wait_ms, data = new.data,
                   body = CASE WHEN new.class >= 4 THEN NULL ELSE coalesce(deliveries.body, new.body) END,
                   owner = NULL, leased_until = NULL
               FROM (SELECT unnest($2::BYTEA[]) AS event, unnest($3::BYTEA[]) AS target, unnest($4::SMALLINT[]) AS class,
                   unnest($5::BIGINT[]) AS at, unnest($6::BIGINT[]) AS due, unnest($7::BIGINT[]) AS wait_ms,
                   unnest($8::TEXT[]) AS data, unnest($9::BYTEA[]) AS body) new
               WHERE deliveries.workspace = $1 AND deliveries.event = new.event AND deliveries.target = new.target";
    tx.execute(sql, &[&workspace, events, targets, classes, times, due, waits, data, &bodies]).await.map(drop)
}

/// Changes locked deliveries.
pub(super) async fn change(
    tx: &Tx,
    workspace: WorkspaceId,
    stored: &[StoredDelivery],
    change: impl Fn(&Delivery) -> Delivery,
) -> Result<()> {
    let changed: Vec<_> = stored.iter().map(|stored| (change(&stored.delivery), None)).collect();
    update(tx, workspace, &changed).await
}

/// Finds a delivery by its id, and locks it if `lock` is ` FOR UPDATE`.
pub(super) async fn find(
    tx: &Tx,
    workspace: WorkspaceId,
    id: DeliveryId,
    lock: &str,
) -> Result<Option<StoredDelivery>> {
    let rest = "deliveries WHERE workspace = $1 AND event >= $2 AND event <= $3 ORDER BY event, target";
    let (first, last) = id.events().into_inner();
    for row in tx.query(&(select(rest) + lock), &[&workspace, &first, &last]).await? {
        if DeliveryId::of(row.get(0), row.get(1)) == id {
            return decode(&row).map(Some);
        }
    }
    Ok(None)
}

/// Locks deliveries, in their order, and returns those that exist.
pub(super) async fn lock(
    tx: &Tx,
    workspace: WorkspaceId,
    keys: impl Iterator<Item = (EventId, DeliveryTarget)>,
) -> Result<Vec<StoredDelivery>> {
    let (events, targets): (Vec<_>, Vec<_>) = keys.unzip();
    let rest = "(SELECT unnest($2::BYTEA[]) AS event, unnest($3::BYTEA[]) AS target) wanted
                JOIN deliveries ON deliveries.event = wanted.event AND deliveries.target = wanted.target
                WHERE deliveries.workspace = $1
                ORDER BY deliveries.event, deliveries.target FOR UPDATE OF deliveries";
    query(tx, rest, &[&workspace, &events, &targets]).await
}

/// Locks the deliveries about a submission.
pub(super) async fn lock_of_submission(
    tx: &Tx,
    form: FormId,
    submission: SubmissionId,
) -> Result<Vec<StoredDelivery>> {
    let rest = "deliveries WHERE form = $1 AND submission = $2 ORDER BY event, target FOR UPDATE";
    query(tx, rest, &[&form, &submission]).await
}
