//! Optimistic concurrency: a change names the revision of the form or submission that it was based on (`If-Match`,
//! RFC 9110 §13.1.1).

use crate::domain::form::admission::Refusal;

/// The revisions that a change may be applied to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExpectedRevision {
    #[default]
    Any,
    OneOf(Vec<u64>),
}

impl ExpectedRevision {
    /// Checks that the current `revision` is one of the expected ones.
    ///
    /// # Errors
    /// [`Refusal::PreconditionFailed`] if it is not among the expected ones.
    pub fn check(&self, revision: u64) -> Result<(), Refusal> {
        match self {
            Self::OneOf(revisions) if !revisions.contains(&revision) => Err(Refusal::PreconditionFailed),
            Self::Any | Self::OneOf(_) => Ok(()),
        }
    }
}
