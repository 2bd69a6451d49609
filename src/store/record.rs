//! What stores hold, independent of how: the records that a copy moves from one store to another.

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

use super::Result;
use super::queue::StoredQueue;
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::integration::event::Event;
use crate::domain::submission::Submission;
use crate::domain::workspace::{ApiKey, Workspace};
use crate::id::{FormId, IntegrationId, WorkspaceId};

/// The kinds of records, in the order in which they are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// The signing key, one record.
    Settings,
    Workspaces,
    ApiKeys,
    /// In the trash or not.
    Forms,
    Submissions,
    /// In the trash or quarantined.
    TrashedSubmissions,
    Deliveries,
    /// Responses to requests with idempotency keys.
    Replies,
}

impl RecordKind {
    pub const ALL: [Self; 8] = [
        Self::Settings,
        Self::Workspaces,
        Self::ApiKeys,
        Self::Forms,
        Self::Submissions,
        Self::TrashedSubmissions,
        Self::Deliveries,
        Self::Replies,
    ];
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Where a record is among those of its kind: bytes in the same order in all stores.
pub type RecordKey = Vec<u8>;

/// One object with all that belongs to it.
#[derive(Debug, Clone, Serialize)]
pub(super) enum Record {
    Settings { signing_key: Vec<u8> },
    Workspace(Workspace),
    ApiKey { key: ApiKey, last_use: Option<Timestamp> },
    Form(Box<FormRecord>),
    Submission { submission: Submission, history: Vec<StateRecord> },
    Delivery(Box<DeliveryRecord>),
    Response { id: RecordKey, body: u128, result: u128, at: Timestamp, extra: Vec<u8> },
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct FormRecord {
    pub(super) form: Form,
    pub(super) versions: Vec<StoredVersion>,
    pub(super) retired: RetiredIds,
    pub(super) queues: Vec<(IntegrationId, StoredQueue)>,
    /// Number of the last event.
    pub(super) sequence: u64,
}

/// A state that an edit has replaced.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StateRecord {
    pub(super) number: u32,
    pub(super) state: Submission,
    pub(super) replaced_at: Timestamp,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct DeliveryRecord {
    pub(super) workspace: WorkspaceId,
    pub(super) delivery: Delivery,
    pub(super) body: Option<Vec<u8>>,
    /// `None` of the completion of a submission, and if what it is about was erased.
    pub(super) event: Option<Event>,
    pub(super) attempts: Vec<Attempt>,
}

/// A record with its key.
#[derive(Debug, Clone)]
pub struct KeyedRecord {
    pub(super) key: RecordKey,
    pub(super) record: Record,
}

/// Reading and writing of all that a store holds, while nothing else writes.
///
/// Not copied are permits of confirmations, and responses that are erased with a form: those to restorations of forms, and to
/// requests that create or test integrations.
#[async_trait]
pub trait Records: Send + Sync {
    /// Reads records with keys after `after`, up to `until` and including it, in their order: as many as suit the store. None
    /// only if there are no more.
    async fn read_records(
        &self,
        kind: RecordKind,
        after: &[u8],
        until: Option<&[u8]>,
    ) -> Result<Vec<KeyedRecord>>;

    /// Writes records, in place of those that have their keys, and deletes those with the keys `gone`, in one step.
    async fn write_records(
        &self,
        kind: RecordKind,
        records: Vec<KeyedRecord>,
        gone: Vec<RecordKey>,
    ) -> Result<()>;

    /// Completes a form after its submissions were written: counts them.
    async fn recount(&self, form: FormId) -> Result<()>;
}
