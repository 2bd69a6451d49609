//! Which revision of a form or a submission a change was made for, so that nobody overwrites what they have not seen.

use crate::domain::form::admission::Refusal;

/// The revisions that a change may meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExpectedRevision {
    /// Whatever has become of it.
    #[default]
    Any,
    /// One of these.
    OneOf(Vec<u64>),
}

impl ExpectedRevision {
    /// Refuses what has moved on, to `revision`.
    pub fn check(&self, revision: u64) -> Result<(), Refusal> {
        match self {
            Self::OneOf(revisions) if !revisions.contains(&revision) => Err(Refusal::PreconditionFailed),
            Self::Any | Self::OneOf(_) => Ok(()),
        }
    }
}
