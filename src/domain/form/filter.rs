//! Which forms a list has.

use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, accepting};
use crate::domain::form::{Form, FormStatus};

/// What is asked of every form in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormFilter {
    /// Those in the trash instead of those outside it.
    pub trashed: bool,
    pub status: Option<FormStatus>,
    /// Stands in the title, in capitals or not.
    pub title: Option<String>,
    /// Why they do not accept answers, at this time.
    pub accepting_reason: Option<(AcceptingReason, Timestamp)>,
}

impl FormFilter {
    /// Whether the list has `form`, as far as that does not depend on its responses.
    pub fn matches(&self, form: &Form) -> bool {
        let title = self.title.as_ref().map(|title| title.to_lowercase());
        form.deleted_at.is_some() == self.trashed
            && self.status.is_none_or(|status| form.status == status)
            && title.is_none_or(|title| form.title.to_lowercase().contains(&title))
    }

    /// Whether `form`, which has so many `responses`, does not accept answers for the reason that is asked for.
    pub fn matches_reason(&self, form: &Form, responses: u64) -> bool {
        self.accepting_reason.is_none_or(|(reason, now)| accepting(form, responses, now) == Err(reason))
    }

    /// Whether all forms in the trash, or all outside it, are in the list.
    pub fn matches_all(&self) -> bool {
        self.status.is_none() && self.title.is_none() && self.accepting_reason.is_none()
    }

    /// The moment that gives `form` its place in the list.
    pub fn sort_key(&self, form: &Form) -> Timestamp {
        form.deleted_at.filter(|_| self.trashed).unwrap_or(form.created_at)
    }
}
