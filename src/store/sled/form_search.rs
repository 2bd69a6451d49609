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
use crate::store::{FormRows, ITEM_OVERHEAD, PAGE_BYTES, Result};

/// List entries read at once; enough for a default page.
const ENTRIES_PER_READ: usize = 128;

/// A search in a list of forms, newest first, with its progress.
pub(super) struct FormSearch {
    workspace: WorkspaceId,
    filter: FormFilter,
    goal: SearchGoal,
    /// Entries still to be examined.
    remaining: KeyRange,
    at_end: bool,
    is_full: bool,
    rows: Vec<(Arc<Form>, u64)>,
    bytes: usize,
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
            if search.at_end || search.is_full || job.is_overdue() {
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
        Ok(form.filter(|form| filter.matches(form) && layout::list_entry(form) == entry))
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
        let remaining = layout::list(workspace, filter.trashed, after);
        let filter = filter.clone();
        let (at_end, is_full, rows, bytes, count) = (false, false, Vec::new(), 0, 0);
        Self { workspace, filter, goal, remaining, at_end, is_full, rows, bytes, count }
    }

    pub(super) fn into_page(self) -> Result<FormRows> {
        let next = match self.remaining.1 {
            Bound::Excluded(last) if !self.at_end => Some(layout::list_position(&last)?),
            _ => None,
        };
        Ok(FormRows { rows: self.rows, next })
    }

    /// Returns the number of matches, if the search is complete.
    pub(super) fn into_count(self) -> Option<u64> {
        self.at_end.then_some(self.count)
    }

    /// Examines entries until the list ends, the page is full, or `until` has passed; at least one entry.
    fn run(&mut self, store: &SledStore, until: Option<Instant>) -> Result<()> {
        while !self.at_end {
            let entries =
                store.reader.scan(self.remaining.clone(), Direction::Descending, ENTRIES_PER_READ)?;
            let are_last = entries.len() < ENTRIES_PER_READ;
            for (entry, _) in entries {
                self.take(store, &entry)?;
                if self.is_full {
                    return Ok(());
                }
                self.remaining.1 = Bound::Excluded(entry);
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(());
                }
            }
            self.at_end = are_last;
        }
        Ok(())
    }

    /// Adds the form of an entry to the result, if it matches and the page is not full.
    fn take(&mut self, store: &SledStore, entry: &[u8]) -> Result<()> {
        if self.goal == SearchGoal::Count && self.filter.matches_all() {
            self.count += 1;
            return Ok(());
        }
        let Some(form) = store.listed_form(self.workspace, &self.filter, entry)? else { return Ok(()) };
        let responses = store.counters(form.id)?.responses;
        if self.filter.matches_reason(&form, responses) {
            match self.goal {
                SearchGoal::Count => self.count += 1,
                SearchGoal::Page(limit) => {
                    self.bytes +=
                        form.title.len() + form.slug.as_ref().map_or(0, String::len) + ITEM_OVERHEAD;
                    let exceeds_page = self.bytes > PAGE_BYTES && !self.rows.is_empty();
                    self.is_full = exceeds_page || self.rows.len() == limit;
                    if !self.is_full {
                        self.rows.push((form, responses));
                    }
                }
            }
        }
        Ok(())
    }
}
