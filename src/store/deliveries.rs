//! The outbox: events owed to integrations, and the deliveries that come of them.
//!
//! Whatever writes a submission or a form records the event in the same atomic write. A submission adds its id to an
//! outbox row that it shares with others; all other events write their deliveries at once, with a snapshot. A delivery of a
//! submission has no row of its own before its first attempt: until then it is what the outbox has beyond the queue's
//! position, and its id is derived from event and integration.
//!
//! The deliveries of one integration are a *queue*. Queues are independent of each other: a receiver that does not answer
//! only delays its own.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Result, StepResult};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{Attempt, SendReport};
use crate::domain::delivery::health::Health;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::csv_file::CsvPosition;
use crate::domain::integration::event::Event;
use crate::id::{DeliveryId, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};

/// The deliveries of one integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId {
    pub workspace: WorkspaceId,
    pub form: FormId,
    pub integration: IntegrationId,
}

/// Where a delivery is: it is read there without a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryPlace {
    pub form: FormId,
    pub event: EventId,
    pub integration: IntegrationId,
}

impl DeliveryPlace {
    pub fn of(delivery: &Delivery) -> Self {
        let Delivery { form, event, integration, .. } = *delivery;
        Self { form, event, integration }
    }
}

/// State of a queue beyond its deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueState {
    pub health: Health,
    /// The receiver asked for no request before this time.
    pub paced_until: Option<Timestamp>,
    /// The acknowledged end of a CSV file.
    pub file: Option<CsvPosition>,
}

/// Deliveries of a queue that an attempt is due for, oldest first.
#[derive(Debug, Clone)]
pub struct QueueBatch {
    /// The form, which may be in the trash.
    pub form: Arc<Form>,
    pub state: QueueState,
    pub due: Vec<DueDelivery>,
    /// When to load the queue again, if `due` is empty; `None` if nothing is known to become due.
    pub next_due: Option<Timestamp>,
}

/// A delivery that an attempt is due for.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    /// Before its first attempt, as it will be stored.
    pub delivery: Delivery,
    /// `None` if what it is about was erased.
    pub event: Option<Event>,
    /// Whether its submission is in the trash; then it waits.
    pub is_in_trash: bool,
    /// The body rendered at the first attempt.
    pub body: Option<Vec<u8>>,
}

/// How to proceed with a due delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptDecision {
    /// Attempt it with this body.
    Send(Vec<u8>),
    /// The integration's condition does not hold.
    Skip,
    /// Its submission is in the trash.
    Pause,
    /// Its subject was erased.
    Cancel,
    /// Rendering failed. Counts as a failed attempt.
    Fail(SendReport),
}

/// A decision about a due delivery, as [loaded](Deliveries::load_queue).
#[derive(Debug, Clone)]
pub struct NewAttempt {
    pub delivery: Delivery,
    pub decision: AttemptDecision,
}

/// An attempt that was counted and may be carried out.
#[derive(Debug, Clone)]
pub struct BegunAttempt {
    /// With this attempt counted.
    pub delivery: Delivery,
    pub body: Vec<u8>,
}

/// The outcome of a begun attempt.
#[derive(Debug, Clone)]
pub struct FinishedAttempt {
    pub delivery: Delivery,
    pub started_at: Timestamp,
    pub report: SendReport,
    /// Random number from 0.8 to 1.2 by which the next wait is multiplied.
    pub jitter: f64,
}

/// Criteria of a list of deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub form: Option<FormId>,
    /// The only forms that the caller may see; `None` for all.
    pub forms: Option<Vec<FormId>>,
    pub integration: Option<IntegrationId>,
    pub submission: Option<SubmissionId>,
    /// Empty for all.
    pub status: Vec<DeliveryStatus>,
    /// Earliest time of the event.
    pub since: Option<Timestamp>,
    /// The time of the event is earlier.
    pub until: Option<Timestamp>,
}

/// A page of deliveries. It may be empty and still have a next page: a search that runs out of time ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRows {
    pub rows: Vec<Delivery>,
    /// The position after which the next page begins, opaque; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// Totals of a queue, for the health of an integration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueTotals {
    pub integration: Option<IntegrationId>,
    pub state: QueueState,
    /// Deliveries that wait for an attempt, those included that have no row yet.
    pub pending: u64,
    pub dead: u64,
}

/// Statistics of the deliveries of one type of integration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeStats {
    pub pending: u64,
    pub in_flight: u64,
    pub paused: u64,
    pub dead: u64,
    /// When the delivery that waits longest was due.
    pub oldest_due_at: Option<Timestamp>,
    /// Delivered within the last 24 hours.
    pub delivered: u64,
    /// Median and 99th percentile of the time that these took, in milliseconds.
    pub p50_ms: Option<u64>,
    pub p99_ms: Option<u64>,
}

/// The outbox and its deliveries.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Lists the queues with deliveries that wait, each with a time before which no attempt is due. Takes time by the number
    /// of queues, not of deliveries. A queue whose deliveries wait in the outbox is due at once, whatever its state. Also goes
    /// on with what [`resume_queue`](Self::resume_queue) had to do when the process ended.
    async fn list_queues(&self) -> Result<Vec<(QueueId, Timestamp)>>;

    /// Whether any form has an integration, or had one that is still to be forgotten.
    async fn has_integrations(&self) -> Result<bool>;

    /// Waits until this process has recorded an event, or revived a delivery, since the last call; returns the queues of the
    /// forms whose integrations are enabled. Only one task may wait.
    async fn changed_queues(&self) -> Vec<QueueId>;

    /// Loads at most `limit` deliveries of a queue that are due at `now`: retries first, then those from the outbox. `None`
    /// if the form or the integration no longer exists; then [`drop_queue`](Self::drop_queue) is called for. Loads nothing
    /// of a form in the trash but deletions, nothing of an integration that is disabled or paused, and nothing before the time
    /// that the receiver asked for: `next_due` is then when the next lease ends, or that time.
    async fn load_queue(&self, queue: QueueId, now: Timestamp, limit: usize) -> Result<Option<QueueBatch>>;

    /// Records decisions about due deliveries. Those to be sent are counted as attempted, keep their body, and belong to the
    /// caller until `lease_until`; then they are due again. Decisions about deliveries that have changed since they were
    /// loaded have no effect. Returns the attempts to carry out.
    async fn begin_attempts(
        &self,
        queue: QueueId,
        attempts: Vec<NewAttempt>,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Vec<BegunAttempt>>;

    /// Records the outcomes of begun attempts, all or none, with the new `file` position if given, and returns the state of
    /// the queue. An outcome of a delivery that has changed since, because its lease ended, is only logged.
    async fn finish_attempts(
        &self,
        queue: QueueId,
        finished: Vec<FinishedAttempt>,
        file: Option<CsvPosition>,
        now: Timestamp,
    ) -> Result<QueueState>;

    /// Stores the position of a CSV file before anything is written there.
    async fn put_file_position(&self, queue: QueueId, file: CsvPosition) -> Result<()>;

    /// Forgets a queue whose integration no longer exists, in the background. What waited is canceled.
    fn drop_queue(&self, queue: QueueId);

    /// Ends a pause by the server, and makes the deliveries pending again that died since the integration fails.
    async fn resume_queue(&self, queue: QueueId, now: Timestamp) -> Result<()>;

    /// Returns the totals of the queues of all integrations of a form.
    async fn queue_totals(&self, workspace: WorkspaceId, form: FormId) -> Result<Vec<QueueTotals>>;

    /// Finds a delivery, which may have no row yet, in the workspace's outboxes too.
    async fn find_delivery(&self, workspace: WorkspaceId, delivery: DeliveryId) -> Result<Option<Delivery>>;

    /// Lists the deliveries that match `filter`, newest event first, after the position `after`.
    async fn list_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows>;

    /// Lists the attempts of a delivery, oldest first.
    async fn list_attempts(&self, workspace: WorkspaceId, delivery: DeliveryPlace) -> Result<Vec<Attempt>>;

    /// Returns a delivery with what it sends: its event, and its body, if it has been rendered.
    async fn load_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryPlace,
    ) -> Result<Option<(Arc<Form>, DueDelivery)>>;

    /// Makes a delivery pending again, due at `at`, with a new schedule. One that waits already becomes due at `at`.
    async fn redeliver(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryPlace,
        at: Timestamp,
    ) -> Result<StepResult<Delivery>>;

    /// Cancels a delivery that waits. Refused as [`NotPending`](crate::domain::form::admission::Refusal) if it does not.
    async fn cancel_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryPlace,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>>;

    /// Returns statistics of the workspace's deliveries, by the name of the integration's type.
    async fn delivery_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>>;

    /// Erases, in the background, deliveries that ended long ago: dead ones after 30 days, others after 7.
    fn prune_deliveries(&self, now: Timestamp);
}
