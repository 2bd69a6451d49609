//! Deliveries: events owed to integrations, written with what happened and carried out afterwards.
//!
//! Whatever writes a submission or a form also writes one row for each delivery that this causes. From then on a delivery is
//! found by its id, listed by range, claimed, finished, canceled and pruned like any row.
//!
//! The deliveries of one integration are a *queue*. Queues are independent of each other: a receiver that does not answer
//! only delays its own.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Page, Result, StepResult};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::{Attempt, SendReport};
use crate::domain::delivery::health::Health;
use crate::domain::delivery::lifecycle::ManualChange;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::event::Event;
use crate::id::{DeliveryId, FormId, FormRef, IntegrationId, SubmissionId, WorkspaceId};

/// The deliveries of one integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId {
    pub workspace: WorkspaceId,
    pub form: FormId,
    pub integration: IntegrationId,
}

impl FormRef {
    pub(super) fn queue(self, integration: IntegrationId) -> QueueId {
        QueueId { workspace: self.workspace, form: self.id, integration }
    }
}

/// Whoever claims deliveries: one run of the loop that carries them out.
pub type Owner = u64;

/// How many deliveries of a queue may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// At most this many now.
    For(usize),
    /// None before an attempt in progress ends.
    Full,
    /// None before this time.
    After(Timestamp),
}

/// Tells how many deliveries of a queue may be claimed, given its integration and health.
pub type Capacity<'a> = dyn FnMut(QueueId, &Integration, &Health) -> Room + Send + 'a;

/// What was claimed, and when to look again.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    pub batches: Vec<ClaimedBatch>,
    /// Whether a queue had no room.
    pub has_full: bool,
    /// When another delivery is due of a queue that has room; `None` if nothing is known to become due.
    pub next_due: Option<Timestamp>,
}

/// Claimed deliveries of one queue, oldest first, or some of them, which are carried out together.
#[derive(Debug, Clone)]
pub struct ClaimedBatch {
    pub queue: QueueId,
    /// The form, which may be in the trash.
    pub form: Arc<Form>,
    pub integration: Arc<Integration>,
    pub deliveries: Vec<Delivery>,
    /// The number of changes of the form that a file has to show, if the integration is a file.
    pub changes: Option<u64>,
}

/// A delivery with what it sends.
#[derive(Debug, Clone)]
pub struct LoadedDelivery {
    pub delivery: Delivery,
    /// `None` if what it is about was erased.
    pub event: Option<Event>,
    /// Whether its submission is in the trash; then it waits.
    pub is_in_trash: bool,
    /// The body rendered at the first attempt, unless it succeeded.
    pub body: Option<Vec<u8>>,
}

/// The end of a claimed delivery's attempt.
#[derive(Debug, Clone)]
pub struct FinishedAttempt {
    /// As claimed.
    pub delivery: Delivery,
    pub result: AttemptEnd,
}

/// How the attempt of a claimed delivery ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnd {
    Sent {
        started_at: Timestamp,
        report: Box<SendReport>,
        /// Random number from 0.8 to 1.2 by which the next wait is multiplied.
        jitter: f64,
        /// The body that was sent, which later attempts send again; `None` of a file.
        body: Option<Vec<u8>>,
        /// The address it was sent to, if the integration has several.
        to: Option<String>,
        /// Hash of the respondent's address, if a permit to send a confirmation was taken.
        mailbox: Option<u64>,
    },
    /// There is nothing to send.
    Skipped,
    /// Nothing was sent, and it goes on waiting, paused if its submission is in the trash.
    NotSent,
    /// Its subject was erased, or the integration no longer has its address.
    Canceled,
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

/// A delivery with its form, which may be in the trash.
pub type FormDelivery = (Arc<Form>, Delivery);

/// A page of deliveries; the position after it is opaque.
pub type DeliveryRows = Page<FormDelivery, Vec<u8>>;

/// Totals of a queue, for the health of an integration and for statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueTotals {
    pub health: Health,
    /// Deliveries that wait for an attempt, those included that are paused.
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
    /// Delivered within the last 24 hours, counted by the hour.
    pub delivered: u64,
    /// Integrations that are paused because their receivers fail.
    pub paused_integrations: u64,
}

/// Statistics by the name of the integration's type.
pub type StatsByType = Vec<(&'static str, TypeStats)>;

/// Whether a confirmation may be sent to a respondent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmationPermit {
    Granted,
    /// The address has had one of this form within a day.
    AlreadySent,
    /// The form has sent as many as it may within the hour.
    Wait {
        wait_ms: i64,
    },
}

/// The deliveries of all workspaces.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Claims deliveries that are due at `now` for `owner`, at most as many of each queue as `capacity` allows. Nobody else can
    /// claim them until they are finished or released; readers see them as in flight. Claims nothing of an integration that is
    /// disabled or paused, and nothing of a form in the trash but deletions. A claim ends with the process, or within minutes.
    async fn claim_due(&self, owner: Owner, now: Timestamp, capacity: &mut Capacity<'_>) -> Result<Claims>;

    /// Loads a delivery with what it sends.
    async fn load_claimed(&self, delivery: &Delivery) -> Result<LoadedDelivery>;

    /// Records the ends of claimed attempts of one queue, all or none, and returns its health. The end of an attempt whose
    /// delivery has changed meanwhile, because it was erased or canceled, is dropped. `written` is the number of
    /// [changes](ClaimedBatch::changes) that a file shows now.
    async fn finish(
        &self,
        queue: QueueId,
        finished: Vec<FinishedAttempt>,
        written: Option<u64>,
        now: Timestamp,
    ) -> Result<Health>;

    /// Releases all claims of `owner`, as if they had never been made.
    async fn release(&self, owner: Owner);

    /// Waits until deliveries may have become due since the last call. Only one task may wait.
    async fn due_changed(&self);

    /// Takes a permit to send a confirmation to the respondent with the address hash `mailbox`: one a day, and 500 accepted
    /// ones an hour for each form. Granted again to the same delivery.
    async fn permit_confirmation(
        &self,
        delivery: &Delivery,
        mailbox: u64,
        now: Timestamp,
    ) -> Result<ConfirmationPermit>;

    /// Whether any form has an integration, or had one whose queue is still to be removed.
    async fn has_integrations(&self) -> Result<bool>;

    /// Returns the totals of the queues of all integrations of a form, in their order.
    async fn queue_totals(&self, form: FormRef) -> Result<Vec<QueueTotals>>;

    /// Finds a delivery.
    async fn find_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
    ) -> Result<Option<FormDelivery>>;

    /// Lists the deliveries that match `filter`, newest event first, after the position `after`.
    async fn list_deliveries(
        &self,
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<DeliveryRows>;

    /// Lists the attempts of a delivery, oldest first.
    async fn list_attempts(&self, delivery: &Delivery) -> Result<Vec<Attempt>>;

    /// Changes a delivery [by hand](Delivery::change).
    async fn change_delivery(
        &self,
        workspace: WorkspaceId,
        delivery: DeliveryId,
        change: ManualChange,
        now: Timestamp,
    ) -> Result<StepResult<Delivery>>;

    /// Returns statistics of the workspace's deliveries.
    async fn delivery_stats(&self, workspace: WorkspaceId, now: Timestamp) -> Result<StatsByType>;

    /// Makes the deliveries due that wait longer than their schedule says, because the clock was set back.
    async fn bring_forward(&self, now: Timestamp) -> Result<()>;

    /// Erases deliveries that ended long ago, dead ones after 30 days and others after 7, and permits of confirmations after a
    /// day; possibly in the background.
    async fn prune_deliveries(&self, now: Timestamp) -> Result<()>;
}
