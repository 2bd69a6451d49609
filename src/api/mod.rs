//! The wire: the JSON of the API, as the server writes it and the command line reads it.
//!
//! Shapes only; `contract` is what they must match. Nothing here decides anything.

mod batches;
mod deliveries;
mod erasure;
mod forms;
mod integrations;
mod keys;
mod problem;
pub mod schema;
mod server;
mod submissions;

use serde::{Serialize, Serializer};

use crate::secret::Secret;

pub use batches::{BatchResult, BatchResults};
pub use deliveries::{
    Attempt, AttemptList, DeliveryCount, DeliveryDetail, DeliveryList, DeliveryStats, DeliveryTypeStats,
    EventRef, IntegrationRef,
};
pub use erasure::{ErasedSubmission, Erasure};
pub use forms::{FormCreated, FormDetail, FormEntry, FormList, PageLinks, VersionList, VersionView};
pub use integrations::{
    HealthState, IntegrationDetail, IntegrationHealth, IntegrationList, SecretRotated, SecretView,
};
pub use keys::{KeyDetail, KeyList, NewKey, NewWorkspace, Rotate, WorkspaceDetail, WorkspaceList};
pub use problem::{Code, PROBLEM_TYPE, Problem, explain};
pub use server::{DamageView, KeyView, LimitsView, StoreView, VerificationView, Whoami, WorkspaceView};
pub use submissions::{
    FormSummary, HistoryList, ReplacedView, SubmissionBody, SubmissionDetail, SubmissionList,
};

/// Serializes a secret in the one response that shows it.
fn reveal<S: Serializer>(secret: &Option<Secret<String>>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::reveal).serialize(serializer)
}
