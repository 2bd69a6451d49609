//! Submissions on their way into the trash, out of it, and for good out of the store.

use super::counters::Counters;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Rows, Tx};
use super::entry::{self, Entry};
use super::forms::find_live;
use super::{SledStore, edits, held, idempotency, layout};
use crate::clock::Timestamp;
use crate::domain::form::admission::Refusal;
use crate::domain::revision::Expected;
use crate::domain::submission::Submission;
use crate::id::{FormId, SubmissionId, WorkspaceId};
use crate::store::{PAGE_BYTES, Retry, Step, StoreError, SubmissionRows};

/// Submissions that are swept together; each is three keys, and more where it is large.
const SWEPT: usize = 25;

impl SledStore {
    /// Reads the trash of a form, in the order of the live list.
    pub(super) fn read_trash(
        &self,
        form: FormId,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<SubmissionRows, StoreError> {
        let range = layout::trashed_submissions(form, before);
        let (found, cut) = self.engine.scan_page(range, Direction::Descending, limit + 1, PAGE_BYTES)?;
        let more = found.len() > limit || cut;
        let rows = found.iter().take(limit).map(|(key, body)| trashed(key, body));
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        Ok(SubmissionRows { next: rows.last().filter(|_| more).map(|last| last.id), rows })
    }

    /// Erases the submissions that went to the trash before `horizon`: how many.
    pub(super) async fn erase_trashed_submissions(&self, horizon: Timestamp) -> Result<usize, StoreError> {
        let mut erased = 0;
        loop {
            let due = self.engine.scan(layout::due(horizon), Direction::Ascending, SWEPT)?;
            if due.is_empty() {
                return Ok(erased);
            }
            let gone = self.engine.write_as(WriteKind::Reclaim, move |tx| sweep(tx, due)).await?;
            erased += gone.len();
            for submission in gone.iter().filter(|submission| submission.edits() > 0) {
                self.go_on_forgetting(submission.form, submission.id);
            }
        }
    }

    /// Erases what edits have replaced in a purged submission, bit by bit behind the others' backs.
    pub(super) fn go_on_forgetting(&self, form: FormId, submission: SubmissionId) {
        let history = layout::history(form, submission, None);
        self.erase_in_background(vec![history], layout::forgetting(form, submission));
    }
}

/// The submission in a row of the trash.
pub(super) fn trashed(key: &[u8], body: &[u8]) -> Result<Submission, StoreError> {
    let (form, id) = layout::listed_submission(key)?;
    let (deleted, state) = entry::read_since(body)?;
    Ok(Submission { deleted_at: Some(deleted), ..state.of(form, id)? })
}

fn find_trashed(tx: &Tx<'_>, form: FormId, id: SubmissionId) -> Result<Option<Submission>, StoreError> {
    let key = layout::trashed_submission(form, id);
    tx.get(&key)?.map(|body| trashed(&key, &body)).transpose()
}

/// Moves a submission at the revision expected to the trash.
pub(super) fn put_in(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    id: SubmissionId,
    expected: &Expected,
    now: Timestamp,
) -> Result<Step<()>, StoreError> {
    if find_live(tx, workspace, form)?.is_none() {
        return Ok(Step::Missing);
    }
    let Some(found) = held::find(tx, form, id)? else { return Ok(Step::Missing) };
    if let Err(why) = expected.check(found.submission.revision()) {
        return Ok(Step::Refused(why));
    }
    let submission = found.remove(tx)?;
    tx.put(layout::trashed_submission(form, id), Entry::of(&submission)?.since(now));
    tx.put(layout::sweep(now, form, id), Vec::new());
    count_one_less(tx, form)?;
    Ok(Step::Done(()))
}

/// Takes a submission out of the trash again.
pub(super) fn restore(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    id: SubmissionId,
    retry: Option<&Retry>,
    now: Timestamp,
) -> Result<Step<Submission>, StoreError> {
    let Some(form) = find_live(tx, workspace, form)? else { return Ok(Step::Missing) };
    let live = held::find(tx, form.id, id)?.map(|found| found.submission);
    let in_trash = find_trashed(tx, form.id, id)?;
    let Some(submission) = live.as_ref().or(in_trash.as_ref()) else { return Ok(Step::Missing) };
    match idempotency::earlier(tx, retry, now)? {
        Some(Ok((earlier, _))) => {
            // It may be in the trash again, and edited before that.
            let now = Submission { deleted_at: None, ..submission.clone() };
            let unknown = |_size| layout::undecodable("an idempotency record");
            let edits = u32::try_from(earlier.made).map_err(unknown)?;
            return edits::after(now, edits, |key| tx.get(key)).map(Step::Replayed);
        }
        Some(Err(why)) => return Ok(Step::Refused(why)),
        None => {}
    }
    let Some(submission) = in_trash else { return Ok(Step::Refused(Refusal::NotInTrash)) };
    let counters = Counters::of(tx, form.id)?;
    if let Err(why) = form.seat(counters.responses) {
        return Ok(Step::Refused(why));
    }
    take_out(tx, &submission);
    let submission = Submission { deleted_at: None, ..submission };
    let run = held::put_back(tx, &submission)?;
    // New submissions go to the last run, or behind it.
    let counters = Counters { responses: counters.responses + 1, run: counters.run.max(run), ..counters };
    counters.put(tx, form.id);
    if let Some(retry) = retry {
        idempotency::remember(tx, retry, submission.edits().into(), &[], now)?;
    }
    Ok(Step::Done(submission))
}

/// Erases a submission at the revision expected, in the trash or not, but for what edits have replaced in it. Returns
/// what it was.
pub(super) fn purge(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    id: SubmissionId,
    expected: &Expected,
) -> Result<Step<Submission>, StoreError> {
    if find_live(tx, workspace, form)?.is_none() {
        return Ok(Step::Missing);
    }
    let (live, in_trash) = (held::find(tx, form, id)?, find_trashed(tx, form, id)?);
    let submission = live.as_ref().map(|found| &found.submission).or(in_trash.as_ref());
    let Some(submission) = submission.cloned() else { return Ok(Step::Missing) };
    if let Err(why) = expected.check(submission.revision()) {
        return Ok(Step::Refused(why));
    }
    match live {
        Some(found) => {
            count_one_less(tx, form)?;
            found.remove(tx)?;
        }
        None => take_out(tx, &submission),
    }
    begin_to_forget(tx, &submission);
    Ok(Step::Done(submission))
}

/// Erases the submissions that `due` sweeps. Returns what they were.
fn sweep(tx: &mut Tx<'_>, due: Rows) -> Result<Vec<Submission>, StoreError> {
    let mut gone = Vec::new();
    for (entry, _) in due {
        let (form, id) = layout::listed_submission(&entry)?;
        // Since the scan it may have been restored, and even deleted anew; or it went with its form.
        let submission = find_trashed(tx, form, id)?;
        let is_due = |deleted| layout::sweep(deleted, form, id) == entry;
        if let Some(submission) = submission.filter(|submission| submission.deleted_at.is_some_and(is_due)) {
            tx.delete(layout::trashed_submission(form, id));
            begin_to_forget(tx, &submission);
            gone.push(submission);
        }
        tx.delete(entry);
    }
    Ok(gone)
}

/// Notes that what edits have replaced in `submission` is to go.
fn begin_to_forget(tx: &mut Tx<'_>, submission: &Submission) {
    if submission.edits() > 0 {
        tx.put(layout::forgetting(submission.form, submission.id), Vec::new());
    }
}

/// Takes a submission out of the trash.
fn take_out(tx: &mut Tx<'_>, submission: &Submission) {
    let Submission { form, id, deleted_at, .. } = *submission;
    tx.delete(layout::trashed_submission(form, id));
    if let Some(deleted) = deleted_at {
        tx.delete(layout::sweep(deleted, form, id));
    }
}

fn count_one_less(tx: &mut Tx<'_>, form: FormId) -> Result<(), StoreError> {
    let counters = Counters::of(tx, form)?;
    Counters { responses: counters.responses.saturating_sub(1), ..counters }.put(tx, form);
    Ok(())
}
