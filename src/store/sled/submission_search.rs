//! Searches in the submissions of a form.

use std::ops::{Bound, RangeBounds};

use super::block::{self, BlockItem};
use super::engine::reader::Reader;
use super::engine::tx::{Direction, KeyRange};
use super::search::{Found, Search, SearchGoal};
use super::{SledStore, layout, locate};
use crate::domain::submission::Submission;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::id::{FormId, FormRef, SubmissionId};
use crate::store::{ITEM_OVERHEAD, Result};

/// A search in the blocks of a form.
pub(super) struct SubmissionSearch {
    form: FormId,
    filter: SubmissionFilter,
    direction: Direction,
    ids: (Bound<SubmissionId>, Bound<SubmissionId>),
}

impl SledStore {
    /// Searches for submissions that match `filter`, after the submission `after`; `None` if the form does not exist outside
    /// the trash.
    pub(super) async fn search_submissions(
        &self,
        form: FormRef,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        goal: SearchGoal,
    ) -> Result<Option<Found<SubmissionSearch>>> {
        if self.live_form(form)?.is_none() {
            return Ok(None);
        }
        let mut ids = filter.id_range();
        let (direction, start) = match order {
            Order::NewestFirst => (Direction::Descending, &mut ids.1),
            Order::OldestFirst => (Direction::Ascending, &mut ids.0),
        };
        if let Some(after) = after {
            *start = Bound::Excluded(after);
        }
        let search = SubmissionSearch { form: form.id, filter: filter.clone(), direction, ids };
        let range = search.blocks(&self.reader)?;
        let found = self.search(search, range, direction, goal).await?;
        Ok(self.live_form(form)?.map(|_| found))
    }
}

impl SubmissionSearch {
    /// Returns the range of blocks that may contain matches. The lowest id may be inside a block.
    fn blocks(&self, reader: &Reader) -> Result<KeyRange> {
        let mut range = layout::blocks_within(self.form, self.ids);
        if let Bound::Included(id) | Bound::Excluded(id) = self.ids.0 {
            let block = locate::block_up_to(reader, self.form, id)?;
            range.0 = block.map_or(range.0, |(key, _)| Bound::Included(key));
        }
        Ok(range)
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

impl Search for SubmissionSearch {
    type Item = Submission;
    type Position = SubmissionId;

    /// A block holds one submission, or eight and more.
    fn items_per_row(&self) -> Option<usize> {
        (!self.filter.reads_answers()).then_some(8)
    }

    fn examine(&self, store: &SledStore, _: &[u8], block: &[u8], found: &mut Found<Self>) -> Result<()> {
        let mut items = block::read(block)?;
        if self.direction == Direction::Descending {
            items.reverse();
        }
        for item in items.iter().filter(|item| self.ids.contains(&item.id)) {
            let matching = self.match_item(item, &store.reader)?.map(|one| {
                let bytes = one.size() + ITEM_OVERHEAD;
                (one, bytes)
            });
            if !found.take(item.id, matching) {
                break;
            }
        }
        Ok(())
    }
}
