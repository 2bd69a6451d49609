//! Searches in the lists of forms: live ones by time of creation, trashed ones by time of deletion.

use std::sync::Arc;

use super::counters::Counters;
use super::search::{Found, Search, SearchGoal};
use super::{SledStore, layout};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::filter::FormFilter;
use crate::id::{FormId, WorkspaceId};
use crate::store::{ITEM_OVERHEAD, Result};

/// A search in a list of forms of a workspace.
pub(super) struct FormSearch {
    pub(super) workspace: WorkspaceId,
    pub(super) filter: FormFilter,
}

impl Search for FormSearch {
    type Item = (Arc<Form>, u64);
    type Position = (Timestamp, FormId);

    fn items_per_row(&self) -> Option<usize> {
        self.filter.matches_all().then_some(1)
    }

    fn examine(&self, store: &SledStore, entry: &[u8], _: &[u8], found: &mut Found<Self>) -> Result<()> {
        let position = layout::list_position(entry)?;
        if found.goal == SearchGoal::Count && self.filter.matches_all() {
            found.count(position);
            return Ok(());
        }
        let mut matching = None;
        // The form may have been trashed or restored since the entry was read.
        if let Some(form) = store.form(self.workspace.form(position.1))?
            && self.filter.matches(&form)
            && layout::list_entry(&form) == entry
        {
            let responses = Counters::of(&store.reader, form.id)?.responses;
            let bytes = form.title.len() + form.slug.as_ref().map_or(0, String::len) + ITEM_OVERHEAD;
            let matches = self.filter.matches_reason(&form, responses);
            matching = matches.then_some(((form, responses), bytes));
        }
        found.take(position, matching);
        Ok(())
    }
}
