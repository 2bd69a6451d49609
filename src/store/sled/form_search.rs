//! Searches in the lists of forms: live ones by time of creation, trashed ones by time of deletion.

use std::ops::Bound;
use std::sync::Arc;

use tokio::time::Instant;

use super::engine::tx::{Direction, KeyRange};
use super::submission_search::SearchGoal;
use super::{SHORT_SCAN, SledStore, layout};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::filter::FormFilter;
use crate::id::{FormId, WorkspaceId};
use crate::store::{FormRows, Result};

/// List entries read at once; enough for a default page.
const BATCH: usize = 128;

/// A search in a list of forms, newest first, with its progress.
pub(super) struct FormSearch {
    workspace: WorkspaceId,
    filter: FormFilter,
    goal: SearchGoal,
    /// Entries still to be examined.
    remaining: KeyRange,
    is_done: bool,
    rows: Vec<(Arc<Form>, u64)>,
    /// Number of matching forms.
    count: u64,
}

impl SledStore {
    /// Runs the search until it is complete or out of time.
    pub(super) async fn search_forms(&self, mut search: FormSearch) -> Result<FormSearch> {
        if search.filter.matches_all()
            && matches!(search.goal, SearchGoal::Page(limit) if limit <= SHORT_SCAN)
        {
            search.run(self, None)?;
            return Ok(search);
        }
        let job = self.pool.admit()?;
        loop {
            let store = self.clone();
            let step = move |until| search.run(&store, Some(until)).map(|()| search);
            search = job.run(step).await??;
            if search.is_done || job.is_overdue() {
                return Ok(search);
            }
        }
    }

    /// Returns the form of a list entry, if the entry is current: the form may have been trashed or restored since
    /// the scan.
    fn listed_form(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        entry: &[u8],
    ) -> Result<Option<Arc<Form>>> {
        let form = self.form(workspace, layout::listed_form(entry)?)?;
        Ok(form.filter(|form| filter.matches(form) && list_key(filter, form) == entry))
    }
}

impl FormSearch {
    /// Creates a search for the forms of `workspace` that match `filter` and are older than `after`.
    pub(super) fn new(
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        goal: SearchGoal,
    ) -> Self {
        let (filter, remaining) = (filter.clone(), list_range(workspace, filter, after));
        Self { workspace, filter, goal, remaining, is_done: false, rows: Vec::new(), count: 0 }
    }

    /// Returns the page found.
    pub(super) fn into_page(self) -> Result<FormRows> {
        let stopped_at = match self.remaining.1 {
            Bound::Excluded(last) if !self.is_done => Some(layout::list_position(&last)?),
            _ => None,
        };
        Ok(FormRows { rows: self.rows, stopped_at })
    }

    /// Returns the number of matches, if the search is complete.
    pub(super) fn into_count(self) -> Option<u64> {
        self.is_done.then_some(self.count)
    }

    /// Examines entries until the list ends, the page is full, or `until` has passed; at least one entry.
    fn run(&mut self, store: &SledStore, until: Option<Instant>) -> Result<()> {
        while !self.is_done {
            let entries = store.reader.scan(self.remaining.clone(), Direction::Descending, BATCH)?;
            let are_last = entries.len() < BATCH;
            for (entry, _) in entries {
                self.take(store, &entry)?;
                self.remaining.1 = Bound::Excluded(entry);
                if matches!(self.goal, SearchGoal::Page(limit) if self.rows.len() == limit) {
                    self.is_done = true;
                    return Ok(());
                }
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(());
                }
            }
            self.is_done = are_last;
        }
        Ok(())
    }

    /// Adds the form of an entry to the result, if it matches.
    fn take(&mut self, store: &SledStore, entry: &[u8]) -> Result<()> {
        let is_counted_unseen = self.goal == SearchGoal::Count && self.filter.matches_all();
        if is_counted_unseen {
            self.count += 1;
        } else if let Some(form) = store.listed_form(self.workspace, &self.filter, entry)? {
            if self.goal == SearchGoal::Count && self.filter.accepting_reason.is_none() {
                self.count += 1;
                return Ok(());
            }
            let responses = store.counters(form.id)?.responses;
            if self.filter.matches_reason(&form, responses) {
                match self.goal {
                    SearchGoal::Count => self.count += 1,
                    SearchGoal::Page(_) => self.rows.push((form, responses)),
                }
            }
        }
        Ok(())
    }
}

/// Returns the key range of the list that `filter` applies to.
fn list_range(workspace: WorkspaceId, filter: &FormFilter, after: Option<(Timestamp, FormId)>) -> KeyRange {
    match filter.trashed {
        true => layout::trashed_forms(workspace, after),
        false => layout::live_forms(workspace, after),
    }
}

/// Returns the key of `form` in the list that `filter` applies to.
fn list_key(filter: &FormFilter, form: &Form) -> Vec<u8> {
    let list = if filter.trashed { layout::trashed_form } else { layout::live };
    list(form.workspace, filter.sort_key(form), form.id)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::cpu_pool::{CpuPool, PoolLimits};
    use crate::domain::form::definition::Definition;
    use crate::domain::json;
    use crate::domain::revision::ExpectedRevision;
    use crate::domain::validation::limits::Limits;
    use crate::secret::SystemRandomness;
    use crate::store::sled::engine::options::EngineOptions;
    use crate::store::{Forms, NewForm};

    fn open(folder: &Path, limits: PoolLimits) -> SledStore {
        let (pool, random) = (CpuPool::new(limits), Arc::new(SystemRandomness::new()));
        SledStore::open(folder, EngineOptions::default(), pool, random, Arc::new(|_| ())).unwrap()
    }

    async fn insert(store: &SledStore, ws: WorkspaceId, id: FormId, now: Timestamp) {
        let value = json::parse(r#"{"title":"Tea"}"#).unwrap();
        let definition = Definition::read(&value, &Limits::default()).unwrap();
        let (form, version) = Form::create(id, ws, definition, now);
        store
            .insert_form(NewForm { form, version: version.to_stored(), idempotency_key: None })
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_search_without_time_ends_with_a_position_to_go_on_from() {
        let folder = tempfile::tempdir().unwrap();
        let no_time = PoolLimits { step: Duration::ZERO, max_time: Duration::ZERO, ..PoolLimits::default() };
        let store = open(folder.path(), no_time);
        let (ws, at) = (WorkspaceId::from_bytes([1; 8]), Timestamp::from_millis);
        for number in 1..=3 {
            insert(&store, ws, FormId::from_bytes([number; 8]), at(number.into())).await;
        }
        let called = |title: &str| FormFilter { title: Some(title.to_owned()), ..FormFilter::default() };
        for (filter, found_each) in [(called("tea"), 1), (called("coffee"), 0)] {
            let mut after = None;
            for number in [3, 2, 1] {
                let page = store.list_forms(ws, &filter, after, 9).await.unwrap();
                after = Some((at(number.into()), FormId::from_bytes([number; 8])));
                assert_eq!((page.rows.len(), page.stopped_at), (found_each, after), "{filter:?}");
            }
            assert_eq!(store.list_forms(ws, &filter, after, 9).await.unwrap().stopped_at, None);
            assert_eq!(store.count_forms(ws, &filter).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn an_entry_that_is_not_the_forms_place_any_more_shows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), PoolLimits::default());
        let (ws, id) = (WorkspaceId::from_bytes([1; 8]), FormId::from_bytes([2; 8]));
        let at = Timestamp::from_millis;
        insert(&store, ws, id, at(1)).await;
        for deleted in [2, 3] {
            store.trash_form(ws, id, ExpectedRevision::Any, at(deleted)).await.unwrap();
            store.restore_form(ws, id, None, at(deleted)).await.unwrap();
        }
        store.trash_form(ws, id, ExpectedRevision::Any, at(4)).await.unwrap();
        let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
        let shown = |entry: Vec<u8>| store.listed_form(ws, &in_trash, &entry).unwrap().is_some();
        assert!(shown(layout::trashed_form(ws, at(4), id))); // A reader may have seen the form at its earlier position.
        assert!(
            !shown(layout::trashed_form(ws, at(2), id)),
            "it would be seen twice, and the cursor go back"
        );
        assert!(!shown(layout::live(ws, at(1), id)));
    }
}
