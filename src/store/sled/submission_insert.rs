//! Insertion of new submissions: their ids, and the blocks that hold them.

use super::counters::Counters;
use super::engine::tx::Tx;
use super::row_source::RowSource;
use super::{Context, block, events, layout, locate, submission_codec};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::submission::Submission;
use crate::id::{FormId, Random, SubmissionId};
use crate::store::Result;

/// Maximum backward clock step that ids ignore; a larger step is followed.
const TOLERATED_STEP_MILLIS: i64 = 60_000;

/// Inserts an encoded submission to `form`. Returns its id and the form's counters after it, which the caller has to put.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    context: &Context,
    form: &Form,
    counters: Counters,
    encoded: &[u8],
    notify: bool,
    now: Timestamp,
) -> Result<(SubmissionId, Counters)> {
    let random = &*context.random;
    let id = next_id(tx, random, counters.last, now)?;
    let (id, block) = match counters.highest {
        Some(highest) if id <= highest => find_gap(tx, random, form.id, id)?,
        Some(_) | None => (id, counters.block),
    };
    let block = append_to_block(tx, form.id, encoded, block, id);
    let counters = Counters {
        responses: counters.responses + 1,
        last: Some(id),
        highest: counters.highest.max(Some(id)),
        block: counters.block.max(Some(block)),
        ..counters
    };
    if notify {
        return Ok((id, events::record_completed(tx, form, counters, id)?));
    }
    events::record_file_change(tx, form)?;
    Ok((id, counters))
}

/// Stores an encoded submission in quarantine: with those in the trash, but never counted. Returns its id and the form's counters
/// after it, which the caller has to put.
pub(super) fn insert_quarantined(
    tx: &mut Tx<'_>,
    context: &Context,
    form: FormId,
    counters: Counters,
    encoded: &[u8],
    now: Timestamp,
) -> Result<(SubmissionId, Counters)> {
    let id = next_id(tx, &*context.random, counters.last, now)?;
    tx.put_new(layout::trashed_submission(form, id), [&layout::encode_time(now), encoded].concat());
    tx.put(layout::trash_sweep(now, form, id), Vec::new());
    Ok((id, Counters { last: Some(id), highest: counters.highest.max(Some(id)), ..counters }))
}

/// Writes a submission of another store, in the place of the one that has its id, if there is one.
pub(super) fn insert_copy(tx: &mut Tx<'_>, submission: &Submission) -> Result<()> {
    let (form, id) = (submission.form, submission.id);
    if let Some(found) = locate::find(tx, form, id)? {
        return found.replace(tx, submission);
    }
    let counters = Counters::of(tx, form)?;
    let block = match counters.highest {
        Some(highest) if id <= highest => locate::insert_restored(tx, submission)?,
        Some(_) | None => {
            let encoded = submission_codec::encode_whole(submission)?;
            Some(append_to_block(tx, form, &encoded, counters.block, id))
        }
    };
    let counters = Counters {
        responses: counters.responses + 1,
        last: counters.last.max(Some(id)),
        highest: counters.highest.max(Some(id)),
        block: counters.block.max(block),
        ..counters
    };
    counters.put(tx, form);
    Ok(())
}

/// Appends a submission to `block`, the one before `id`, if this group has written it and it has space, else starts a
/// new block. Returns the first id of the block.
fn append_to_block(
    tx: &mut Tx<'_>,
    form: FormId,
    encoded: &[u8],
    block: Option<SubmissionId>,
    id: SubmissionId,
) -> SubmissionId {
    if let Some(block) = block {
        let key = layout::block(form, block);
        if let Some(longer) = tx
            .staged(&key)
            .filter(|block| block::has_space(block, encoded))
            .map(|block| block::append(block, id, encoded))
        {
            tx.put(key, longer);
            return block;
        }
    }
    // No block can exist at an id that was just assigned.
    tx.put_new(layout::block(form, id), block::single(id, encoded));
    id
}

/// Finds an id at or after `id` between two blocks, and the first id of the block before it. After the clock was set
/// back, ids of earlier times may lie inside existing blocks.
fn find_gap(
    tx: &Tx<'_>,
    random: &dyn Random,
    form: FormId,
    mut id: SubmissionId,
) -> Result<(SubmissionId, Option<SubmissionId>)> {
    loop {
        let Some((key, block)) = locate::block_up_to(tx, form, id)? else { return Ok((id, None)) };
        let last = block::last_id(&block)?;
        if last < id {
            return Ok((id, Some(layout::listed_submission(&key)?.1)));
        }
        // Ids after the last one of a block may belong to submissions that were trashed from it.
        id = last.beyond(random);
    }
}

/// Returns the next id of a form: above the last one assigned, so that ids are in commit order. A single wrong boot
/// clock must not move all later ids into the far future, so a large step back is followed. Cursors issued before
/// would then skip new submissions, so a new signing key invalidates them: once for all forms.
fn next_id(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    last: Option<SubmissionId>,
    now: Timestamp,
) -> Result<SubmissionId> {
    let is_ahead = |millis: i64| millis - now.millis() > TOLERATED_STEP_MILLIS;
    let stepped_back = last.filter(|last| is_ahead(last.millis()));
    let id = SubmissionId::after(last.filter(|_| stepped_back.is_none()), now.millis(), random);
    let latest = tx.read(layout::LATEST_ID, layout::decode_time)?.map(Timestamp::millis);
    let ends_cursors = stepped_back.filter(|_| latest.is_none_or(is_ahead));
    if let Some(ahead) = ends_cursors {
        tracing::warn!(last = %ahead, now = %now, "the clock was set back; submission times follow it, cursors end");
        let mut signing_key = [0; 32];
        random.fill(&mut signing_key);
        tx.put(layout::SIGNING_KEY.to_vec(), signing_key.to_vec());
    }
    if ends_cursors.is_some() || latest.is_none_or(|latest| latest < id.millis()) {
        // Ahead of the id, so that it is written once a minute.
        let latest = Timestamp::from_millis(id.millis() + TOLERATED_STEP_MILLIS);
        tx.put(layout::LATEST_ID.to_vec(), layout::encode_time(latest));
    }
    Ok(id)
}
