//! Searches over a range of rows, in bounded steps, so that other requests are not blocked.

use std::ops::Bound;

use tokio::time::Instant;

use super::engine::tx::{Direction, KeyRange};
use super::{SHORT_SCAN, SledStore};
use crate::store::search;
pub(super) use crate::store::search::SearchGoal;
use crate::store::{PAGE_BYTES, Page, Result};

/// Maximum bytes read at once.
const SLICE_BYTES: usize = 1 << 20;

/// Rows read at once by a search of unknown length.
const ROWS_PER_READ: usize = 64;

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
pub(super) type Found<S> = search::Found<<S as Search>::Item, <S as Search>::Position>;

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
        self.found.is_done()
    }

    /// Examines rows until the search is done or `until` has passed; at least one row.
    fn run(&mut self, store: &SledStore, until: Option<Instant>) -> Result<()> {
        while !self.is_done() {
            let limit = match (self.found.goal, self.search.items_per_row()) {
                (SearchGoal::Page(limit), Some(items)) => 1 + (limit - self.found.len()) / items,
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
                if self.found.is_full() || until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(());
                }
            }
            if !goes_on {
                self.found.end();
            }
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
        let mut running = RunningSearch { search, range, direction, found: Found::<S>::new(goal) };
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
            if job.is_overdue() && running.found.has_position() {
                break;
            }
        }
        Ok(running.found)
    }
}
