//! Temporary.
use super::Context;
use super::transaction::Tx;
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::submission::Submission;
use crate::id::*;
use crate::store::Result;
pub(super) async fn record_completed(_: &Tx, _: &Form, _: &[SubmissionId]) -> Result<()> {
    Ok(())
}
pub(super) async fn record(
    _: &Tx,
    _: &Context,
    _: &Form,
    _: (EventType, Subject),
    _: Option<IntegrationId>,
    _: Timestamp,
) -> Result<()> {
    Ok(())
}
pub(super) async fn resume_submission(_: &Tx, _: WorkspaceId, _: &Submission, _: Timestamp) -> Result<()> {
    Ok(())
}
pub(super) async fn cancel_submission(_: &Tx, _: FormRef, _: SubmissionId, _: Timestamp) -> Result<()> {
    Ok(())
}
