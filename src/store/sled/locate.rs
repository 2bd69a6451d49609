//! Location of a submission's content: in its block, or in its overflow row.

use super::block::{self, BlockItem};
use super::engine::tx::{Direction, Row, Tx};
use super::layout;
use super::row_source::RowSource;
use super::submission_codec;
use crate::domain::submission::Submission;
use crate::id::{FormId, SubmissionId};
use crate::store::{Result, StoreError};

/// Reads the submission of a block item. `None` if it has been deleted meanwhile.
pub(super) fn read(rows: &impl RowSource, form: FormId, item: &BlockItem<'_>) -> Result<Option<Submission>> {
    if !item.view.is_overflow() {
        return item.view.to_submission(form, item.id).map(Some);
    }
    let Some(body) = rows.get(&layout::overflow(form, item.id))? else { return Ok(None) };
    submission_codec::read(&body)?.to_submission(form, item.id).map(Some)
}

/// Reads the last block of `form` whose first id is at most `id`, with its key.
pub(super) fn block_up_to(rows: &impl RowSource, form: FormId, id: SubmissionId) -> Result<Option<Row>> {
    Ok(rows.scan(layout::blocks_up_to(form, id), Direction::Descending, 1)?.pop())
}

/// Reads the submission `id` of `form`, unless it is in the trash.
pub(super) fn read_live(rows: &impl RowSource, form: FormId, id: SubmissionId) -> Result<Option<Submission>> {
    let Some((_, block)) = block_up_to(rows, form, id)? else { return Ok(None) };
    match block::read(&block)?.into_iter().find(|item| item.id == id) {
        Some(item) => read(rows, form, &item),
        None => Ok(None),
    }
}

/// Returns a submission as it was after its first `count` edits, given its current state.
pub(super) fn read_as_of_edit(rows: &impl RowSource, now: Submission, count: u32) -> Result<Submission> {
    match rows.get(&layout::replaced_state(now.form, now.id, count))? {
        Some(body) => submission_codec::read_with_timestamp(&body)?.1.to_submission(now.form, now.id),
        None => Ok(now),
    }
}

/// A live submission and its location, within a transaction.
pub(super) struct LocatedSubmission {
    pub(super) submission: Submission,
    is_overflow: bool,
    key: Vec<u8>,
    block: Vec<u8>,
}

/// Finds the submission `id` of `form`, unless it is in the trash.
pub(super) fn find(tx: &Tx<'_>, form: FormId, id: SubmissionId) -> Result<Option<LocatedSubmission>> {
    let Some((key, block)) = block_up_to(tx, form, id)? else { return Ok(None) };
    let Some(item) = block::read(&block)?.into_iter().find(|item| item.id == id) else { return Ok(None) };
    let submission = read(tx, form, &item)?.ok_or_else(|| StoreError::Missing(format!("what {id} holds")))?;
    let is_overflow = item.view.is_overflow();
    Ok(Some(LocatedSubmission { submission, is_overflow, key, block }))
}

impl LocatedSubmission {
    /// Writes `edited` in its place, to the overflow row.
    pub(super) fn replace(self, tx: &mut Tx<'_>, edited: &Submission) -> Result<()> {
        if !self.is_overflow {
            let placeholder = submission_codec::placeholder(edited.form_version);
            let block = block::set(&self.block, edited.id, Some(&placeholder))?;
            put_or_delete(tx, self.key, block);
        }
        put_overflow(tx, edited)
    }

    /// Removes it from its block and its overflow row.
    pub(super) fn remove(self, tx: &mut Tx<'_>) -> Result<Submission> {
        let Self { submission, is_overflow, key, block } = self;
        if is_overflow {
            tx.delete(layout::overflow(submission.form, submission.id));
        }
        put_or_delete(tx, key, block::set(&block, submission.id, None)?);
        Ok(submission)
    }
}

/// Inserts a restored submission: into the block whose ids surround its own, or else into a new block, whose first id
/// is returned.
pub(super) fn insert_restored(tx: &mut Tx<'_>, submission: &Submission) -> Result<Option<SubmissionId>> {
    put_overflow(tx, submission)?;
    let (form, id) = (submission.form, submission.id);
    let encoded = submission_codec::placeholder(submission.form_version);
    if let Some((key, block)) = block_up_to(tx, form, id)?
        && block::last_id(&block)? > id
    {
        put_or_delete(tx, key, block::set(&block, id, Some(&encoded))?);
        return Ok(None);
    }
    tx.put(layout::block(form, id), block::single(id, &encoded));
    Ok(Some(id))
}

fn put_overflow(tx: &mut Tx<'_>, submission: &Submission) -> Result<()> {
    let encoded = submission_codec::encode_whole(submission)?;
    tx.put(layout::overflow(submission.form, submission.id), encoded);
    Ok(())
}

fn put_or_delete(tx: &mut Tx<'_>, key: Vec<u8>, body: Option<Vec<u8>>) {
    match body {
        Some(body) => tx.put(key, body),
        None => tx.delete(key),
    }
}
