//! Submissions in the trash or in quarantine, and purging them.

use super::counters::Counters;
use super::engine::job::Progress;
use super::engine::operation::WriteKind;
use super::engine::tx::Tx;
use super::forms::workspace_of;
use super::row_source::{self, RowSource};
use super::search::{Found, Search};
use super::submission_codec;
use super::{Context, SledStore, delivery_layout, delivery_upkeep, events, layout, locate};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::id::{EventId, FormId, SubmissionId, WorkspaceId};
use crate::store::{ITEM_OVERHEAD, Result};

/// A search for the submissions with this status among those in the trash or in quarantine.
pub(super) struct TrashSearch(pub(super) SubmissionStatus);

impl Search for TrashSearch {
    type Item = Submission;
    type Position = SubmissionId;

    /// Any number of the other status may be between two of them.
    fn items_per_row(&self) -> Option<usize> {
        None
    }

    fn examine(&self, _: &SledStore, key: &[u8], body: &[u8], found: &mut Found<Self>) -> Result<()> {
        let submission = decode(key, body)?;
        let (id, bytes) = (submission.id, submission.size() + ITEM_OVERHEAD);
        found.take(id, (submission.status == self.0).then_some((submission, bytes)));
        Ok(())
    }
}

/// Submissions erased per transaction; each is three keys, more if it is large.
const SWEEP_BATCH: usize = 25;

impl SledStore {
    /// Erases all submissions trashed or quarantined before `cutoff`. Returns how many.
    pub(super) async fn erase_trashed_submissions(&self, cutoff: Timestamp) -> Result<usize> {
        let mut erased = 0;
        loop {
            let due = self.reader.first_keys(layout::before(layout::TRASH_SWEEPS, cutoff), SWEEP_BATCH)?;
            if due.is_empty() {
                return Ok(erased);
            }
            let gone = self.engine.write_as(WriteKind::Reclaim, move |tx| sweep(tx, due)).await?;
            erased += gone.len();
            for (form, submission, _) in gone.into_iter().filter(|(.., has_rows)| *has_rows) {
                self.resume_submission_purge(form, submission);
            }
        }
    }

    /// Deletes the remaining rows of a purged submission in the background: its replaced states, and what waits to be
    /// delivered of it.
    pub(super) fn resume_submission_purge(&self, form: FormId, submission: SubmissionId) {
        self.engine.background(move |tx| erase_rows(tx, form, submission));
    }
}

/// Deletes a batch of the remaining rows of a purged submission.
fn erase_rows(tx: &mut Tx<'_>, form: FormId, submission: SubmissionId) -> Result<Progress> {
    // A purge that an earlier version has begun is of a submission without deliveries.
    let deleted = tx.get(&layout::history_purge(form, submission))?.filter(|time| !time.is_empty());
    if let Some(deleted) = deleted
        && delivery_upkeep::cancel_events(tx, form, submission, layout::decode_time(&deleted)?)?
            == Progress::More
    {
        return Ok(Progress::More);
    }
    let progress = row_source::erase(tx, layout::history(form, submission, None))?;
    if progress == Progress::Done {
        tx.delete(layout::history_purge(form, submission));
    }
    Ok(progress)
}

pub(super) fn decode(key: &[u8], body: &[u8]) -> Result<Submission> {
    let (form, id) = layout::listed_submission(key)?;
    let (deleted, view) = submission_codec::read_with_timestamp(body)?;
    Ok(Submission { deleted_at: Some(deleted), ..view.to_submission(form, id)? })
}

pub(super) fn read(rows: &impl RowSource, form: FormId, id: SubmissionId) -> Result<Option<Submission>> {
    let key = layout::trashed_submission(form, id);
    rows.read(&key, |body| decode(&key, body))
}

/// Reads a submission, in the trash, quarantined or neither.
pub(super) fn read_any(rows: &impl RowSource, form: FormId, id: SubmissionId) -> Result<Option<Submission>> {
    let mut found = locate::read_live(rows, form, id)?;
    if found.is_none() {
        found = read(rows, form, id)?;
    }
    if found.is_none() {
        // It may have left the trash between the two reads.
        found = locate::read_live(rows, form, id)?;
    }
    Ok(found)
}

/// Reads a submission as created, before any edit, in the trash, quarantined or neither.
pub(super) fn read_original(
    rows: &impl RowSource,
    form: FormId,
    id: SubmissionId,
) -> Result<Option<Submission>> {
    let Some(found) = read_any(rows, form, id)? else { return Ok(None) };
    let deleted_at = found.deleted_at;
    let original = locate::read_as_of_edit(rows, found, 0)?;
    Ok(Some(Submission { deleted_at, ..original }))
}

/// Records that a submission is no longer live.
pub(super) fn record_deletion(
    tx: &mut Tx<'_>,
    context: &Context,
    form: &Form,
    id: SubmissionId,
    now: Timestamp,
) -> Result<()> {
    let counters = Counters::of(tx, form.id)?;
    Counters { responses: counters.responses.saturating_sub(1), ..counters }.put(tx, form.id);
    events::record_file_change(tx, form)?;
    if form.deleted_at.is_some() {
        // Nobody is notified of what happens to a form in the trash.
        return Ok(());
    }
    let deleted = (EventType::SubmissionDeleted, Subject::DeletedSubmission(id));
    events::record(tx, context, form, deleted, None, now)
}

/// Erases the submissions of the trash entries `due`. Returns them, each with whether rows of it remain.
fn sweep(tx: &mut Tx<'_>, due: Vec<Vec<u8>>) -> Result<Vec<(FormId, SubmissionId, bool)>> {
    let mut gone = Vec::new();
    for entry in due {
        let (form, id) = layout::listed_submission(&entry)?;
        // Since the scan it may have been restored, and even trashed again, or purged with its form.
        let submission = read(tx, form, id)?;
        let is_due = |deleted| layout::trash_sweep(deleted, form, id) == entry;
        if let Some(submission) = submission.filter(|submission| submission.deleted_at.is_some_and(is_due)) {
            tx.delete(layout::trashed_submission(form, id));
            let deleted = submission.deleted_at.unwrap_or(submission.submitted_at());
            // A form without a workspace is being purged, with all its rows.
            let has_rows = match workspace_of(tx, form)? {
                Some(workspace) => begin_erasure(tx, workspace, &submission, deleted)?,
                None => false,
            };
            gone.push((form, id, has_rows));
        }
        tx.delete(entry);
    }
    Ok(gone)
}

/// Records that the remaining rows of `submission`, deleted at `deleted`, must be erased, if there are any. Returns whether.
pub(super) fn begin_erasure(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    submission: &Submission,
    deleted: Timestamp,
) -> Result<bool> {
    let Submission { form, id, .. } = *submission;
    tx.count_erasure()?;
    let has_rows = submission.edits() > 0
        || tx.has_any(delivery_layout::deliveries_of(workspace, EventId::of_completed(id)))?
        || tx.has_any(delivery_layout::submission_events(form, id))?;
    if has_rows {
        tx.put(layout::history_purge(form, id), layout::encode_time(deleted));
    }
    Ok(has_rows)
}

/// Deletes the rows of a submission in the trash or in quarantine.
pub(super) fn remove_from_trash(tx: &mut Tx<'_>, submission: &Submission) {
    let Submission { form, id, deleted_at, .. } = *submission;
    tx.delete(layout::trashed_submission(form, id));
    if let Some(deleted) = deleted_at {
        tx.delete(layout::trash_sweep(deleted, form, id));
    }
}
