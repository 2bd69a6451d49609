//! Searches among a form's submissions: however many must be looked at, a slice at a time, so that nobody waits for it.

use std::ops::{Bound, RangeBounds};

use tokio::time::Instant;

use super::engine::Engine;
use super::engine::tx::Direction;
use super::layout::{self, Range};
use super::run::{self, Kept};
use super::{SHORT_SCAN, SledStore, held};
use crate::domain::submission::Submission;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::id::{FormId, SubmissionId, WorkspaceId};
use crate::store::{ITEM_OVERHEAD, PAGE_BYTES, StoreError, SubmissionRows};

/// Bytes that are read at once, at most.
const SLICE_BYTES: usize = 1 << 20;

/// Runs that are read at once, at least, where it is not known how many must be looked at.
const SEARCHED_RUNS: usize = 64;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// So many submissions, and whether there are more.
    Page(usize),
    /// How many there are.
    Count,
}

/// A search, and how far it has come.
pub(super) struct Search {
    form: FormId,
    filter: SubmissionFilter,
    direction: Direction,
    goal: Goal,
    /// Between which ids.
    ids: (Bound<SubmissionId>, Bound<SubmissionId>),
    /// The runs that were not looked at; `None` if none was.
    left: Option<Range>,
    at_end: bool,
    /// The last submission that was looked at.
    passed: Option<SubmissionId>,
    rows: Vec<Submission>,
    /// Bytes of `rows`.
    bytes: usize,
    is_full: bool,
    /// How many were taken.
    count: u64,
}

impl SledStore {
    /// Searches to the end, or until the search has used up its time; `None` if there is no such form outside the trash.
    pub(super) async fn search(
        &self,
        workspace: WorkspaceId,
        mut search: Search,
    ) -> Result<Option<Search>, StoreError> {
        let form = search.form;
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        if search.rows_at_most().is_some_and(|rows| rows <= SHORT_SCAN) {
            search.run(&self.engine, None)?;
            return Ok(Some(search));
        }
        let job = self.pool.admit()?;
        while !search.is_done() {
            let engine = self.engine.clone();
            let step = move |until| search.run(&engine, Some(until)).map(|()| search);
            search = job.run(step).await??;
            if self.live_form(workspace, form)?.is_none() {
                return Ok(None);
            }
            // A position to go on from is owed even to a search that is late.
            if job.is_overdue() && search.passed.is_some() {
                break;
            }
        }
        Ok(Some(search))
    }
}

impl Search {
    /// A search in `form` for what `filter` takes, behind `after`, which is one of those.
    pub(super) fn new(
        form: FormId,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        goal: Goal,
    ) -> Self {
        let mut ids = filter.ids();
        let (direction, start) = match order {
            Order::NewestFirst => (Direction::Descending, &mut ids.1),
            Order::OldestFirst => (Direction::Ascending, &mut ids.0),
        };
        if let Some(after) = after {
            *start = Bound::Excluded(after);
        }
        let filter = filter.clone();
        let (left, at_end, passed, rows, bytes, is_full, count) =
            (None, false, None, Vec::new(), 0, false, 0);
        Self { form, filter, direction, goal, ids, left, at_end, passed, rows, bytes, is_full, count }
    }

    /// The page that was looked for.
    pub(super) fn into_page(self) -> SubmissionRows {
        SubmissionRows { next: self.passed.filter(|_| !self.at_end), rows: self.rows }
    }

    /// How many were taken, if the search came to its end.
    pub(super) fn into_count(self) -> Option<u64> {
        self.at_end.then_some(self.count)
    }

    /// How many submissions will be looked at, if that is known.
    fn rows_at_most(&self) -> Option<usize> {
        match self.goal {
            Goal::Page(limit) if !self.filter.reads_answers() => Some(limit),
            Goal::Page(_) | Goal::Count => None,
        }
    }

    /// How many runs to read next. How many submissions are in one is not known: one, or eight and more.
    fn runs_at_once(&self) -> usize {
        let least = if self.rows_at_most().is_some() { 1 } else { SEARCHED_RUNS };
        match self.goal {
            Goal::Page(limit) => (1 + (limit - self.rows.len()) / 8).max(least),
            Goal::Count => least,
        }
    }

    fn is_done(&self) -> bool {
        self.at_end || self.is_full
    }

    /// Looks at what is left, up to the end or `until`.
    fn run(&mut self, engine: &Engine, until: Option<Instant>) -> Result<(), StoreError> {
        let mut range = match self.left.take() {
            Some(left) => left,
            None => self.runs(engine)?,
        };
        while !self.is_done() {
            let runs = self.runs_at_once();
            let (found, cut) = engine.scan_page(range.clone(), self.direction, runs, SLICE_BYTES)?;
            let count = found.len();
            for (key, run) in found {
                self.take(&run, engine)?;
                match self.direction {
                    Direction::Ascending => range.0 = Bound::Excluded(key),
                    Direction::Descending => range.1 = Bound::Excluded(key),
                }
                if self.is_full || until.is_some_and(|until| Instant::now() >= until) {
                    self.left = Some(range);
                    return Ok(());
                }
            }
            self.at_end = count < runs && !cut;
        }
        self.left = Some(range);
        Ok(())
    }

    /// The runs that may hold what is looked for. The least of the ids may lie within one.
    fn runs(&self, engine: &Engine) -> Result<Range, StoreError> {
        let mut range = layout::submissions_within(self.form, self.ids);
        if let Bound::Included(id) | Bound::Excluded(id) = self.ids.0 {
            let before = layout::submissions_up_to(self.form, id);
            let run = engine.scan(before, Direction::Descending, 1)?.pop();
            range.0 = run.map_or(range.0, |(key, _)| Bound::Included(key));
        }
        Ok(range)
    }

    /// Takes what is looked for out of a run, and stops where a page is full.
    fn take(&mut self, run: &[u8], engine: &Engine) -> Result<(), StoreError> {
        let mut all = run::read(run)?;
        if self.direction == Direction::Descending {
            all.reverse();
        }
        for kept in all.iter().filter(|kept| self.ids.contains(&kept.id)) {
            if let Some(found) = self.wanted(kept, engine)? {
                match self.goal {
                    Goal::Count => self.count += 1,
                    Goal::Page(limit) => {
                        self.bytes += found.size() + ITEM_OVERHEAD;
                        let is_too_large = self.bytes > PAGE_BYTES && !self.rows.is_empty();
                        if is_too_large || self.rows.len() == limit {
                            self.is_full = true;
                            return Ok(());
                        }
                        self.rows.push(found);
                    }
                }
            }
            self.passed = Some(kept.id);
        }
        Ok(())
    }

    /// The submission that stands in a run as `kept`, if the filter takes it.
    fn wanted(&self, kept: &Kept<'_>, engine: &Engine) -> Result<Option<Submission>, StoreError> {
        let is_apart = kept.state.is_apart();
        if !is_apart && !self.filter.takes(kept.state.answers()?) {
            return Ok(None);
        }
        let found = held::read(self.form, kept, |key| engine.get(key))?;
        Ok(found.filter(|found| !is_apart || self.filter.takes(&found.answers)))
    }
}
