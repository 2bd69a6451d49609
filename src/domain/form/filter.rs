//! The filter of a list of forms.

use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, accepting};
use crate::domain::form::{Form, FormStatus};
use crate::id::FormId;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormFilter {
    /// Whether to list forms in the trash, instead of those outside it.
    pub trashed: bool,
    pub status: Option<FormStatus>,
    /// Text contained in the title, ignoring case.
    pub title: Option<String>,
    /// Only these forms.
    pub forms: Option<Vec<FormId>>,
    /// The reason for not accepting answers, at the given time.
    pub accepting_reason: Option<(AcceptingReason, Timestamp)>,
}

impl FormFilter {
    /// Whether `form` satisfies all criteria except `accepting_reason`.
    pub fn matches(&self, form: &Form) -> bool {
        let title = self.title.as_ref().map(|title| title.to_lowercase());
        form.deleted_at.is_some() == self.trashed
            && self.forms.as_ref().is_none_or(|forms| forms.contains(&form.id))
            && self.status.is_none_or(|status| form.status == status)
            && title.is_none_or(|title| form.title.to_lowercase().contains(&title))
    }

    /// Whether `form`, which has `responses` submissions, satisfies `accepting_reason`.
    pub fn matches_reason(&self, form: &Form, responses: u64) -> bool {
        self.accepting_reason.is_none_or(|(reason, now)| accepting(form, responses, now) == Err(reason))
    }

    /// Whether there are no criteria besides `trashed`.
    pub fn matches_all(&self) -> bool {
        *self == Self { trashed: self.trashed, ..Self::default() }
    }
}
