//! Searches in the submissions of a form, in bounded steps, so that other requests are not blocked.

use std::ops::{Bound, RangeBounds};

use tokio::time::Instant;

use super::block::{self, BlockItem};
use super::engine::reader::Reader;
use super::engine::tx::{Direction, KeyRange};
use super::{SHORT_SCAN, SledStore, layout, locate};
use crate::domain::submission::Submission;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::id::{FormId, SubmissionId, WorkspaceId};
use crate::store::{ITEM_OVERHEAD, PAGE_BYTES, Result, SubmissionRows};

/// Maximum bytes read at once.
const SLICE_BYTES: usize = 1 << 20;

/// Minimum number of blocks read at once by a search of unknown length.
const MIN_BLOCKS: usize = 64;

/// Result wanted from a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchGoal {
    /// This many items, and whether more follow.
    Page(usize),
    /// The number of matches.
    Count,
}

/// A search and its progress.
pub(super) struct SubmissionSearch {
    form: FormId,
    filter: SubmissionFilter,
    direction: Direction,
    goal: SearchGoal,
    ids: (Bound<SubmissionId>, Bound<SubmissionId>),
    /// Blocks still to be read; `None` before the first.
    remaining: Option<KeyRange>,
    at_end: bool,
    /// The last submission examined.
    last_seen: Option<SubmissionId>,
    rows: Vec<Submission>,
    bytes: usize,
    is_full: bool,
    count: u64,
}

impl SledStore {
    /// Runs the search until it is complete or out of time; `None` if the form does not exist outside the trash.
    pub(super) async fn search(
        &self,
        workspace: WorkspaceId,
        mut search: SubmissionSearch,
    ) -> Result<Option<SubmissionSearch>> {
        let form = search.form;
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        if search.max_rows().is_some_and(|rows| rows <= SHORT_SCAN) {
            search.run(&self.reader, None)?;
            return Ok(Some(search));
        }
        let job = self.pool.admit()?;
        while !search.is_done() {
            let reader = self.reader.clone();
            let step = move |until| search.run(&reader, Some(until)).map(|()| search);
            search = job.run(step).await??;
            if self.live_form(workspace, form)?.is_none() {
                return Ok(None);
            }
            // Even a search that is out of time must return a position to continue from.
            if job.is_overdue() && search.last_seen.is_some() {
                break;
            }
        }
        Ok(Some(search))
    }
}

impl SubmissionSearch {
    /// Creates a search in `form` for submissions that match `filter`, after the submission `after`.
    pub(super) fn new(
        form: FormId,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        goal: SearchGoal,
    ) -> Self {
        let mut ids = filter.id_range();
        let (direction, start) = match order {
            Order::NewestFirst => (Direction::Descending, &mut ids.1),
            Order::OldestFirst => (Direction::Ascending, &mut ids.0),
        };
        if let Some(after) = after {
            *start = Bound::Excluded(after);
        }
        Self {
            form,
            filter: filter.clone(),
            direction,
            goal,
            ids,
            remaining: None,
            at_end: false,
            last_seen: None,
            rows: Vec::new(),
            bytes: 0,
            is_full: false,
            count: 0,
        }
    }

    pub(super) fn into_page(self) -> SubmissionRows {
        SubmissionRows { next: self.last_seen.filter(|_| !self.at_end), rows: self.rows }
    }

    /// Returns the number of matches, if the search is complete.
    pub(super) fn into_count(self) -> Option<u64> {
        self.at_end.then_some(self.count)
    }

    /// Returns the number of submissions to be examined, if known.
    fn max_rows(&self) -> Option<usize> {
        match self.goal {
            SearchGoal::Page(limit) if !self.filter.reads_answers() => Some(limit),
            SearchGoal::Page(_) | SearchGoal::Count => None,
        }
    }

    /// Returns the number of blocks to read next. A block holds one submission, or eight and more.
    fn blocks_per_read(&self) -> usize {
        let least = if self.max_rows().is_some() { 1 } else { MIN_BLOCKS };
        match self.goal {
            SearchGoal::Page(limit) => (1 + (limit - self.rows.len()) / 8).max(least),
            SearchGoal::Count => least,
        }
    }

    fn is_done(&self) -> bool {
        self.at_end || self.is_full
    }

    /// Examines the remaining blocks until the end or `until`.
    fn run(&mut self, reader: &Reader, until: Option<Instant>) -> Result<()> {
        let mut range = match self.remaining.take() {
            Some(remaining) => remaining,
            None => self.blocks(reader)?,
        };
        while !self.is_done() {
            let blocks = self.blocks_per_read();
            let (found, goes_on) = reader.scan_page(range.clone(), self.direction, blocks, SLICE_BYTES)?;
            for (key, block) in found {
                self.take(&block, reader)?;
                match self.direction {
                    Direction::Ascending => range.0 = Bound::Excluded(key),
                    Direction::Descending => range.1 = Bound::Excluded(key),
                }
                if self.is_full || until.is_some_and(|until| Instant::now() >= until) {
                    self.remaining = Some(range);
                    return Ok(());
                }
            }
            self.at_end = !goes_on;
        }
        self.remaining = Some(range);
        Ok(())
    }

    /// Returns the range of blocks that may contain matches. The lowest id may be inside a block.
    fn blocks(&self, reader: &Reader) -> Result<KeyRange> {
        let mut range = layout::blocks_within(self.form, self.ids);
        if let Bound::Included(id) | Bound::Excluded(id) = self.ids.0 {
            let block = locate::block_up_to(reader, self.form, id)?;
            range.0 = block.map_or(range.0, |(key, _)| Bound::Included(key));
        }
        Ok(range)
    }

    /// Collects the matches of one block, until the page is full.
    fn take(&mut self, block: &[u8], reader: &Reader) -> Result<()> {
        let mut all = block::read(block)?;
        if self.direction == Direction::Descending {
            all.reverse();
        }
        for item in all.iter().filter(|item| self.ids.contains(&item.id)) {
            if let Some(found) = self.match_item(item, reader)? {
                match self.goal {
                    SearchGoal::Count => self.count += 1,
                    SearchGoal::Page(limit) => {
                        self.bytes += found.size() + ITEM_OVERHEAD;
                        let exceeds_page = self.bytes > PAGE_BYTES && !self.rows.is_empty();
                        if exceeds_page || self.rows.len() == limit {
                            self.is_full = true;
                            return Ok(());
                        }
                        self.rows.push(found);
                    }
                }
            }
            self.last_seen = Some(item.id);
        }
        Ok(())
    }

    /// Returns the submission of a block item, if it matches the filter.
    fn match_item(&self, item: &BlockItem<'_>, reader: &Reader) -> Result<Option<Submission>> {
        let is_overflow = item.view.is_overflow();
        if !is_overflow && !self.filter.matches(item.view.answers()?) {
            return Ok(None);
        }
        let found = locate::read(reader, self.form, item)?;
        Ok(found.filter(|found| !is_overflow || self.filter.matches(&found.answers)))
    }
}
