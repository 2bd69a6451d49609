//! What a search in a list wants and has found, whatever the store.

use super::{PAGE_BYTES, Page, Result, StoreError};
use crate::cpu_pool::CpuPool;
use crate::domain::form::StoredVersion;
use crate::domain::submission::filter::{SubmissionFilter, SubmissionQuery};
use crate::domain::validation::violation::Violation;

/// Result wanted from a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchGoal {
    /// This many items, and whether more follow.
    Page(usize),
    /// The number of matches.
    Count,
}

/// Prepares a search by `query` in answers to the questions of `stored`, on `pool`; violations if it does not suit them.
pub(super) async fn prepare_filter(
    pool: &CpuPool,
    stored: StoredVersion,
    query: SubmissionQuery,
) -> Result<Result<SubmissionFilter, Vec<Violation>>> {
    let prepare = move || {
        let version = stored.read().ok_or_else(|| StoreError::Undecodable("a version".to_owned()))?;
        Ok(SubmissionFilter::new(&query, &version.questions))
    };
    pool.run(prepare).await?
}

/// What a search has found.
pub(super) struct Found<T, P> {
    pub(super) goal: SearchGoal,
    rows: Vec<T>,
    bytes: usize,
    count: u64,
    /// The position of the last item that was taken.
    last: Option<P>,
    is_full: bool,
    at_end: bool,
}

impl<T, P> Found<T, P> {
    pub(super) fn new(goal: SearchGoal) -> Self {
        let (rows, last) = (Vec::new(), None);
        Self { goal, rows, bytes: 0, count: 0, last, is_full: false, at_end: false }
    }

    /// Whether the page is full, or nothing is left to examine.
    pub(super) fn is_done(&self) -> bool {
        self.is_full || self.at_end
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The number of items found for a page.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether a later page can begin after what was examined.
    pub(super) fn has_position(&self) -> bool {
        self.last.is_some()
    }

    /// The position of the last item that was examined.
    #[cfg(feature = "postgres")]
    pub(super) fn last(&self) -> Option<&P> {
        self.last.as_ref()
    }

    /// Records that nothing is left to examine.
    pub(super) fn end(&mut self) {
        self.at_end = !self.is_full;
    }

    /// Takes an item, with its size in bytes if it matches. Returns false, with no effect, if the page is full.
    pub(super) fn take(&mut self, position: P, matching: Option<(T, usize)>) -> bool {
        match (self.goal, matching) {
            (SearchGoal::Page(limit), Some((item, bytes))) => {
                self.bytes += bytes;
                let exceeds_page = self.bytes > PAGE_BYTES && !self.rows.is_empty();
                self.is_full = exceeds_page || self.rows.len() == limit;
                if self.is_full {
                    return false;
                }
                self.rows.push(item);
            }
            (SearchGoal::Count, Some(_)) => self.count += 1,
            (_, None) => {}
        }
        self.last = Some(position);
        true
    }

    /// Takes an item that matches and is only counted.
    pub(super) fn count(&mut self, position: P) {
        self.count += 1;
        self.last = Some(position);
    }

    pub(super) fn into_page(self) -> Page<T, P> {
        Page { next: self.last.filter(|_| !self.at_end), rows: self.rows }
    }

    /// Returns the number of matches, if the search is complete.
    pub(super) fn into_count(self) -> Option<u64> {
        self.at_end.then_some(self.count)
    }
}
