//! Which forms a list has.

use super::form::{Form, Status};
use crate::clock::Timestamp;

/// What is asked of every form in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormFilter {
    /// Those in the trash instead of those outside it.
    pub trashed: bool,
    pub status: Option<Status>,
    /// Stands in the title, in capitals or not.
    pub title: Option<String>,
}

impl FormFilter {
    /// Whether the list has `form`.
    pub fn matches(&self, form: &Form) -> bool {
        let title = self.title.as_ref().map(|title| title.to_lowercase());
        form.deleted_at.is_some() == self.trashed
            && self.status.is_none_or(|status| form.status == status)
            && title.is_none_or(|title| form.title.to_lowercase().contains(&title))
    }

    /// Whether all forms in the trash, or all outside it, are in the list.
    pub fn takes_all(&self) -> bool {
        self.status.is_none() && self.title.is_none()
    }

    /// The moment that gives `form` its place in the list.
    pub fn moment(&self, form: &Form) -> Timestamp {
        form.deleted_at.filter(|_| self.trashed).unwrap_or(form.created_at)
    }
}
