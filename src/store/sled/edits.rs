//! The states of submissions that edits replaced.

use super::engine::tx::Direction;
use super::row_source::RowSource;
use super::{SledStore, layout, submission_codec};
use crate::domain::submission::{ReplacedState, Submission};
use crate::id::{FormId, SubmissionId};
use crate::store::{PAGE_BYTES, Page, Result};

/// Returns a submission as it was after its first `count` edits, given its current state.
pub(super) fn read_as_of_edit(rows: &impl RowSource, now: Submission, count: u32) -> Result<Submission> {
    match rows.get(&layout::replaced_state(now.form, now.id, count))? {
        Some(body) => submission_codec::read_with_timestamp(&body)?.1.to_submission(now.form, now.id),
        None => Ok(now),
    }
}

impl SledStore {
    /// Reads the replaced states of a submission, newest first.
    pub(super) fn read_history(
        &self,
        form: FormId,
        submission: SubmissionId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Page<ReplacedState, u32>> {
        let range = layout::history(form, submission, before);
        let (rows, _) = self.reader.scan_page(range, Direction::Descending, limit, PAGE_BYTES)?;
        let replaced = rows.iter().map(|(key, body)| {
            let (replaced_at, view) = submission_codec::read_with_timestamp(body)?;
            let Submission { answers, metadata, .. } = view.to_submission(form, submission)?;
            Ok(ReplacedState { number: layout::edit_number(key)?, answers, metadata, replaced_at })
        });
        let rows = replaced.collect::<Result<Vec<_>>>()?;
        // Edit numbers have no gaps, so the last one on the page shows whether more follow.
        let next = rows.last().map(|last| last.number).filter(|number| *number > 0);
        Ok(Page { rows, next })
    }
}
