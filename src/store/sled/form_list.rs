//! The lists of forms: those that are live by the time they were made, those in the trash by the time they went there.

use std::ops::Bound;
use std::sync::Arc;

use super::SledStore;
use super::engine::tx::Direction;
use super::layout;
use crate::clock::Timestamp;
use crate::domain::filter::FormFilter;
use crate::domain::form::Form;
use crate::id::{FormId, WorkspaceId};
use crate::store::StoreError;

impl SledStore {
    /// `limit` at most of those that `filter` takes, newest first, from `after` on, with their numbers of submissions.
    pub(super) fn read_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<Vec<(Arc<Form>, u64)>, StoreError> {
        let (mut forms, mut range, mut at_end) = (Vec::new(), listed(workspace, filter, after), false);
        while !at_end && forms.len() < limit {
            let entries = self.engine.scan(range.clone(), Direction::Descending, limit)?;
            at_end = entries.len() < limit;
            for (entry, _) in &entries {
                if let Some(form) = self.listed_form(workspace, filter, entry)? {
                    let responses = self.counters(form.id)?.responses;
                    forms.push((form, responses));
                }
            }
            if let Some((last, _)) = entries.into_iter().next_back() {
                range.1 = Bound::Excluded(last);
            }
        }
        forms.truncate(limit);
        Ok(forms)
    }

    /// The form of a list entry, if the list is to have it there: it may have gone in or out of the trash since the
    /// scan, or both.
    fn listed_form(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        entry: &[u8],
    ) -> Result<Option<Arc<Form>>, StoreError> {
        let form = self.form(workspace, layout::listed_form(entry)?)?;
        Ok(form.filter(|form| filter.matches(form) && place(filter, form) == entry))
    }

    /// How many `filter` takes.
    pub(super) fn count(&self, workspace: WorkspaceId, filter: &FormFilter) -> Result<u64, StoreError> {
        let entries = self.engine.scan(listed(workspace, filter, None), Direction::Descending, usize::MAX)?;
        if filter.takes_all() {
            return Ok(entries.len() as u64);
        }
        let mut count = 0;
        for (entry, _) in entries {
            count += u64::from(self.listed_form(workspace, filter, &entry)?.is_some());
        }
        Ok(count)
    }
}

/// The list of which `filter` takes some.
fn listed(workspace: WorkspaceId, filter: &FormFilter, after: Option<(Timestamp, FormId)>) -> layout::Range {
    match filter.trashed {
        true => layout::trashed_forms(workspace, after),
        false => layout::live_forms(workspace, after),
    }
}

/// Where `form` stands in the list of which `filter` takes some.
fn place(filter: &FormFilter, form: &Form) -> Vec<u8> {
    let list = if filter.trashed { layout::trashed_form } else { layout::live };
    list(form.workspace, filter.moment(form), form.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_pool::CpuPool;
    use crate::domain::definition::Definition;
    use crate::domain::json;
    use crate::domain::limits::Limits;
    use crate::domain::revision::Expected;
    use crate::secret::SystemRandomness;
    use crate::store::sled::engine::options::Options;
    use crate::store::{Forms, NewForm};

    #[tokio::test]
    async fn an_entry_that_is_not_the_forms_place_any_more_shows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let random = Arc::new(SystemRandomness::new());
        let store =
            SledStore::open(folder.path(), Options::default(), CpuPool::default(), random, Arc::new(|_| ()))
                .unwrap();
        let (ws, id) = (WorkspaceId::from_bytes([1; 8]), FormId::from_bytes([2; 8]));
        let value = json::parse(r#"{"title":"Tea"}"#).unwrap();
        let definition = Definition::read(&value, &Limits::default()).unwrap();
        let at = Timestamp::from_millis;
        store.insert_form(ws, NewForm { id, definition, retry: None }, at(1)).await.unwrap();
        for deleted in [2, 3] {
            store.trash_form(ws, id, Expected::Any, at(deleted)).await.unwrap();
            store.restore_form(ws, id, None, at(deleted)).await.unwrap();
        }
        store.trash_form(ws, id, Expected::Any, at(4)).await.unwrap();
        let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
        let shown = |entry: Vec<u8>| store.listed_form(ws, &in_trash, &entry).unwrap().is_some();
        assert!(shown(layout::trashed_form(ws, at(4), id)));
        // A reader may have met it there before.
        assert!(
            !shown(layout::trashed_form(ws, at(2), id)),
            "it would be seen twice, and the cursor go back"
        );
        assert!(!shown(layout::live(ws, at(1), id)));
    }
}
