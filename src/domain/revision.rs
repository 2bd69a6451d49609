//! Which revision of a form a change was made for, so that nobody overwrites what they have not seen.

use super::admission::Refusal;
use super::form::Form;

/// The revisions that a change may meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Expected {
    /// Whatever the form has become.
    #[default]
    Any,
    /// One of these.
    OneOf(Vec<u64>),
}

impl Expected {
    /// Refuses a form that has moved on.
    pub fn check(&self, form: &Form) -> Result<(), Refusal> {
        match self {
            Self::OneOf(revisions) if !revisions.contains(&form.revision) => Err(Refusal::Moved),
            Self::Any | Self::OneOf(_) => Ok(()),
        }
    }
}
