//! Edits of submissions in the embedded store, and the states they replaced.

use super::engine::tx::{Direction, Tx};
use super::forms::find_live;
use super::row_source::RowSource;
use super::submission_codec::{self, EncodedSubmission};
use super::{Context, SledStore, Step, Stop, events, layout, locate};
use crate::clock::Timestamp;
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::submission::{EditInfo, ReplacedState, Submission};
use crate::id::{FormId, SubmissionId, WorkspaceId};
use crate::store::{CheckedEdit, PAGE_BYTES, Page, Result};

/// Applies an edit and keeps the state it replaces.
pub(super) fn edit(
    tx: &mut Tx<'_>,
    context: &Context,
    workspace: WorkspaceId,
    checked: CheckedEdit,
    now: Timestamp,
) -> Step<Submission> {
    let CheckedEdit { form, submission, seen_edits, edit } = checked;
    let live = find_live(tx, workspace, form)?.ok_or(Stop::Missing)?;
    let found = locate::find(tx, form, submission)?.ok_or(Stop::Missing)?;
    let old = &found.submission;
    if old.edits() != seen_edits {
        return Err(Stop::Recheck);
    }
    tx.put(
        layout::replaced_state(form, submission, seen_edits),
        EncodedSubmission::of(old)?.with_timestamp(now),
    );
    let edited = Some(EditInfo { at: now, count: seen_edits + 1 });
    let new = Submission { answers: edit.answers, metadata: edit.metadata, edited, ..old.clone() };
    found.replace(tx, &new)?;
    events::record_file_change(tx, &live)?;
    let updated = (EventType::SubmissionUpdated, Subject::Submission(Box::new(new.clone())));
    events::record(tx, context, &live, updated, None, now)?;
    Ok(new)
}

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
