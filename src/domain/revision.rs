//! Which revision of a form or a submission a change was made for, so that nobody overwrites what they have not seen.

use crate::domain::form::admission::Refusal;

/// The revisions that a change may meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Expected {
    /// Whatever has become of it.
    #[default]
    Any,
    /// One of these.
    OneOf(Vec<u64>),
}

impl Expected {
    /// Refuses what has moved on, to `revision`.
    pub fn check(&self, revision: u64) -> Result<(), Refusal> {
        match self {
            Self::OneOf(revisions) if !revisions.contains(&revision) => Err(Refusal::Moved),
            Self::Any | Self::OneOf(_) => Ok(()),
        }
    }
}
