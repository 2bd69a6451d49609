//! Searches over a range of rows, in bounded steps, so that other requests are not blocked.

use std::ops::Bound;

use tokio::time::Instant;

use super::engine::tx::{Direction, KeyRange};
use super::{SHORT_SCAN, SledStore};
use crate::store::{PAGE_BYTES, Page, Result};

/// Maximum bytes read at once.
const SLICE_BYTES: usize = 1 << 20;

/// Rows read at once by a search of unknown length.
const ROWS_PER_READ: usize = 64;

/// Result wanted from a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchGoal {
    /// This many items, and whether more follow.
    Page(usize),
    /// The number of matches.
    Count,
}

/// A search for the items of rows.
pub(super) trait Search: Send + Sized + 'static {
    type Item: Send + 'static;
    /// Position of an item, after which a later page begins.
    type Position: Send + 'static;

    /// Returns the number of items that a row usually has, if all of them match.
    fn items_per_row(&self) -> Option<usize>;

    /// Passes the items of a row to [`Found::take`], in the order of the search, as long as it takes them.
    fn examine(&self, store: &SledStore, key: &[u8], body: &[u8], found: &mut Found<Self>) -> Result<()>;
}

/// What a search has found.
pub(super) struct Found<S: Search> {
    pub(super) goal: SearchGoal,
    rows: Vec<S::Item>,
    bytes: usize,
    count: u64,
    /// The position of the last item that was taken.
    last: Option<S::Position>,
    is_full: bool,
    at_end: bool,
}

impl<S: Search> Found<S> {
    /// Takes an item, with its size in bytes if it matches. Returns false, with no effect, if the page is full.
    pub(super) fn take(&mut self, position: S::Position, matching: Option<(S::Item, usize)>) -> bool {
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
    pub(super) fn count(&mut self, position: S::Position) {
        self.count += 1;
        self.last = Some(position);
    }

    pub(super) fn into_page(self) -> Page<S::Item, S::Position> {
        Page { next: self.last.filter(|_| !self.at_end), rows: self.rows }
    }

    /// Returns the number of matches, if the search is complete.
    pub(super) fn into_count(self) -> Option<u64> {
        self.at_end.then_some(self.count)
    }
}

/// A search with its progress.
struct RunningSearch<S: Search> {
    search: S,
    /// Rows still to be examined.
    range: KeyRange,
    direction: Direction,
    found: Found<S>,
}

impl<S: Search> RunningSearch<S> {
    fn is_done(&self) -> bool {
        self.found.is_full || self.found.at_end
    }

    /// Examines rows until the search is done or `until` has passed; at least one row.
    fn run(&mut self, store: &SledStore, until: Option<Instant>) -> Result<()> {
        while !self.is_done() {
            let limit = match (self.found.goal, self.search.items_per_row()) {
                (SearchGoal::Page(limit), Some(items)) => 1 + (limit - self.found.rows.len()) / items,
                _ => ROWS_PER_READ,
            };
            let (rows, goes_on) =
                store.reader.scan_page(self.range.clone(), self.direction, limit, SLICE_BYTES)?;
            for (key, body) in rows {
                self.search.examine(store, &key, &body, &mut self.found)?;
                match self.direction {
                    Direction::Ascending => self.range.0 = Bound::Excluded(key),
                    Direction::Descending => self.range.1 = Bound::Excluded(key),
                }
                if self.found.is_full || until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(());
                }
            }
            self.found.at_end = !goes_on;
        }
        Ok(())
    }
}

impl SledStore {
    /// Reads a page of a range, the last key first: on the caller's thread if `rows`, the number to expect, are few.
    pub(super) async fn read_page<T: Send + 'static, P: Send + 'static>(
        &self,
        range: KeyRange,
        (limit, rows): (usize, usize),
        decode: impl Fn(&[u8], &[u8]) -> Result<T> + Send + 'static,
        position: fn(&T) -> P,
    ) -> Result<Page<T, P>> {
        self.scan_on_pool(rows, move |store| {
            let (found, goes_on) =
                store.reader.scan_page(range, Direction::Descending, limit + 1, PAGE_BYTES)?;
            let has_more = found.len() > limit || goes_on;
            let rows = found.iter().take(limit).map(|(key, body)| decode(key, body));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            Ok(Page { next: rows.last().filter(|_| has_more).map(position), rows })
        })
        .await
    }

    /// Searches a range until the search is complete or out of time.
    pub(super) async fn search<S: Search>(
        &self,
        search: S,
        range: KeyRange,
        direction: Direction,
        goal: SearchGoal,
    ) -> Result<Found<S>> {
        let is_short = matches!(goal, SearchGoal::Page(limit) if limit <= SHORT_SCAN);
        let is_short = is_short && search.items_per_row().is_some();
        let (rows, last) = (Vec::new(), None);
        let found = Found { goal, rows, bytes: 0, count: 0, last, is_full: false, at_end: false };
        let mut running = RunningSearch { search, range, direction, found };
        if is_short {
            running.run(self, None)?;
            return Ok(running.found);
        }
        let job = self.pool.admit()?;
        while !running.is_done() {
            let store = self.clone();
            let step = move |until| running.run(&store, Some(until)).map(|()| running);
            running = job.run(step).await??;
            // Even a search that is out of time must return a position to continue from.
            if job.is_overdue() && running.found.last.is_some() {
                break;
            }
        }
        Ok(running.found)
    }
}
