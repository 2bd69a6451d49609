//! Submissions in the embedded store: load, ask the domain, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::counters::Counters;
use super::decoded::DecodedRows;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::entry::Entry;
use super::layout;
use super::search::{Goal, Search};
use super::{SledStore, edits, held, idempotency, run, submission_trash};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::admission::{Remembered, Seen, Verdict, admit};
use crate::domain::revision::Expected;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::domain::submission::{Replaced, Submission};
use crate::id::{FormId, Random, SubmissionId, WorkspaceId};
use crate::store::{CheckedEdit, NewSubmission, Page, Retry, Step, StoreError, SubmissionRows, Submissions};

/// A clock that steps back by more than this is followed; less is ridden out on the ids' own time.
const RIDDEN_OUT_MILLIS: i64 = 60_000;

#[async_trait]
impl Submissions for SledStore {
    async fn find_remembered(&self, retry: &Retry) -> Result<Option<Remembered>, StoreError> {
        let body = self.engine.get(&layout::remembered(retry))?;
        body.map(|body| layout::decode_remembered(&body)).transpose()
    }

    async fn accept_submission(
        &self,
        workspace: WorkspaceId,
        new: NewSubmission<'_>,
        now: Timestamp,
    ) -> Result<Step<SubmissionId>, StoreError> {
        let entry = Entry::new(new.checked_version, new.answers, new.metadata)?;
        let checked = Checked { form: new.form, revision: new.checked_revision, entry, retry: new.retry };
        let random = Arc::clone(&self.random);
        let forms = Arc::clone(&self.forms);
        self.engine.write(move |tx| accept(tx, &forms, &*random, workspace, checked, now)).await
    }

    async fn count_submissions(&self, workspace: WorkspaceId, form: FormId) -> Result<u64, StoreError> {
        match self.form(workspace, form)? {
            Some(form) => Ok(self.counters(form.id)?.responses),
            None => Ok(0),
        }
    }

    async fn find_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
    ) -> Result<Option<Submission>, StoreError> {
        match self.live_form(workspace, form)? {
            Some(_) => self.read_submission(form, submission),
            None => Ok(None),
        }
    }

    async fn find_original(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
    ) -> Result<Option<Submission>, StoreError> {
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        let found = match self.read_submission(form, submission)? {
            Some(live) => Some(live),
            None => self.read_trashed(form, submission)?,
        };
        let before_edits = |found| {
            let found = Submission { deleted_at: None, ..found };
            edits::after(found, 0, |key| self.engine.get(key))
        };
        found.map(before_edits).transpose()
    }

    async fn list_submissions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>, StoreError> {
        let search = Search::new(form, filter, order, after, Goal::Page(limit));
        Ok(self.search(workspace, search).await?.map(Search::into_page))
    }

    async fn count_filtered(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        filter: &SubmissionFilter,
    ) -> Result<Option<u64>, StoreError> {
        if filter.takes_all() {
            return self.count_submissions(workspace, form).await.map(Some);
        }
        let search = Search::new(form, filter, Order::NewestFirst, None, Goal::Count);
        Ok(self.search(workspace, search).await?.map_or(Some(0), Search::into_count))
    }

    async fn list_trashed_submissions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>, StoreError> {
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        self.scan_on_pool(limit, move |store| store.read_trash(form, before, limit)).await.map(Some)
    }

    async fn list_history(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<Replaced>>, StoreError> {
        if self.find_submission(workspace, form, submission).await?.is_none() {
            return Ok(None);
        }
        let work = move |store: &Self| store.read_history(form, submission, before, limit);
        self.scan_on_pool(limit, work).await.map(Some)
    }

    async fn edit_submission(
        &self,
        workspace: WorkspaceId,
        checked: CheckedEdit,
        now: Timestamp,
    ) -> Result<Step<Submission>, StoreError> {
        let kind = WriteKind::for_size(checked.edit.answers.len());
        let work = move |tx: &mut Tx<'_>| edits::edit(tx, workspace, checked, now);
        self.engine.write_as(kind, work).await
    }

    async fn trash_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        expected: Expected,
        now: Timestamp,
    ) -> Result<Step<()>, StoreError> {
        let work =
            move |tx: &mut Tx<'_>| submission_trash::put_in(tx, workspace, form, submission, &expected, now);
        self.engine.write_as(WriteKind::Reclaim, work).await
    }

    async fn restore_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        retry: Option<Retry>,
        now: Timestamp,
    ) -> Result<Step<Submission>, StoreError> {
        let work = move |tx: &mut Tx<'_>| {
            submission_trash::restore(tx, workspace, form, submission, retry.as_ref(), now)
        };
        self.engine.write(work).await
    }

    async fn purge_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
        expected: Expected,
    ) -> Result<Step<()>, StoreError> {
        let work = move |tx: &mut Tx<'_>| submission_trash::purge(tx, workspace, form, submission, &expected);
        let purged = self.engine.write_as(WriteKind::Reclaim, work).await?;
        if matches!(&purged, Step::Done(gone) if gone.edits() > 0) {
            self.go_on_forgetting(form, submission);
        }
        Ok(purged.map(drop))
    }
}

impl SledStore {
    fn read_submission(
        &self,
        form: FormId,
        submission: SubmissionId,
    ) -> Result<Option<Submission>, StoreError> {
        let up_to = layout::submissions_up_to(form, submission);
        let Some((_, run)) = self.engine.scan(up_to, Direction::Descending, 1)?.pop() else {
            return Ok(None);
        };
        match run::read(&run)?.into_iter().find(|kept| kept.id == submission) {
            Some(kept) => held::read(form, &kept, |key| self.engine.get(key)),
            None => Ok(None),
        }
    }

    fn read_trashed(&self, form: FormId, submission: SubmissionId) -> Result<Option<Submission>, StoreError> {
        let key = layout::trashed_submission(form, submission);
        self.engine.get(&key)?.map(|body| submission_trash::trashed(&key, &body)).transpose()
    }
}

/// A submission made ready before the writer's turn.
struct Checked {
    form: FormId,
    revision: u64,
    entry: Entry,
    retry: Option<Retry>,
}

fn accept(
    tx: &mut Tx<'_>,
    forms: &DecodedRows<Form>,
    random: &dyn Random,
    workspace: WorkspaceId,
    new: Checked,
    now: Timestamp,
) -> Result<Step<SubmissionId>, StoreError> {
    let key = layout::form(workspace, new.form);
    let form = match tx.is_staged(&key) {
        true => tx.get(&key)?.map(|body| layout::decode_form(&body).map(Arc::new)).transpose()?,
        false => forms.get(&key, || tx.get(&key), layout::decode_form)?,
    };
    let Some(form) = form.filter(|form| form.deleted_at.is_none()) else { return Ok(Step::Missing) };
    let earlier = match &new.retry {
        Some(retry) => idempotency::recall(tx, retry)?.map(|earlier| (earlier, retry.body)),
        None => None,
    };
    let counters = Counters::of(tx, new.form)?;
    let seen = Seen { form: &form, responses: counters.responses, checked_revision: new.revision, earlier };
    match admit(&seen, now) {
        Ok(Verdict::Store) => write(tx, random, new, counters, now).map(Step::Done),
        Ok(Verdict::Replay(earlier)) => {
            Ok(Step::Replayed(SubmissionId::from_bytes(earlier.made.to_be_bytes())))
        }
        Ok(Verdict::Recheck) => Ok(Step::Recheck),
        Err(why) => Ok(Step::Refused(why)),
    }
}

fn write(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    new: Checked,
    counters: Counters,
    now: Timestamp,
) -> Result<SubmissionId, StoreError> {
    let id = next_id(tx, random, counters.last, now);
    let (id, run) = match counters.highest {
        Some(highest) if id <= highest => among_runs(tx, random, new.form, id)?,
        Some(_) | None => (id, counters.run),
    };
    let run = put_into_run(tx, &new, run, id);
    let counters = Counters {
        responses: counters.responses + 1,
        last: Some(id),
        highest: counters.highest.max(Some(id)),
        run: counters.run.max(Some(run)),
    };
    counters.put(tx, new.form);
    if let Some(retry) = &new.retry {
        idempotency::remember(tx, retry, u128::from_be_bytes(id.to_bytes()), &[], now)?;
    }
    Ok(id)
}

/// Puts a submission into the run that begins at `run` and is the one before `id`, if this group has made it and there is
/// room, else into a new one. Returns where its run begins.
fn put_into_run(tx: &mut Tx<'_>, new: &Checked, run: Option<SubmissionId>, id: SubmissionId) -> SubmissionId {
    if let Some(run) = run {
        let key = layout::submission(new.form, run);
        if let Some(longer) = tx
            .staged(&key)
            .filter(|run| run::has_room(run, &new.entry))
            .map(|run| run::behind(run, id, &new.entry))
        {
            tx.put(key, longer);
            return run;
        }
    }
    // No run begins at an id that was just given.
    tx.put_new(layout::submission(new.form, id), run::of(id, &new.entry));
    id
}

/// An id at or after `id` that lies within no run, and where the run before it begins: times that come again after the
/// clock was set back have runs already.
fn among_runs(
    tx: &Tx<'_>,
    random: &dyn Random,
    form: FormId,
    mut id: SubmissionId,
) -> Result<(SubmissionId, Option<SubmissionId>), StoreError> {
    loop {
        let Some((key, run)) = tx.last(layout::submissions_up_to(form, id))? else { return Ok((id, None)) };
        let last = run::last(&run)?;
        if last < id {
            return Ok((id, Some(layout::listed_submission(&key)?.1)));
        }
        // The ids behind the last one of a run may be those of submissions that went from it to the trash.
        id = last.beyond(random);
    }
}

/// The next id of a form: above the last one given, so that the order of ids is the order of commits. One wrong boot
/// clock must not pin time to the far future, though: a large step back is followed. Positions in lists given out
/// before would then skip what comes after, so a new signing key makes them invalid.
fn next_id(tx: &mut Tx<'_>, random: &dyn Random, last: Option<SubmissionId>, now: Timestamp) -> SubmissionId {
    let stepped_back = last.filter(|last| last.millis() - now.millis() > RIDDEN_OUT_MILLIS);
    let Some(ahead) = stepped_back else { return SubmissionId::after(last, now.millis(), random) };
    tracing::warn!(last = %ahead, now = %now, "the clock was set back; submission times follow it, cursors end");
    let mut signing_key = [0; 32];
    random.fill(&mut signing_key);
    tx.put(layout::SIGNING_KEY.to_vec(), signing_key.to_vec());
    SubmissionId::after(None, now.millis(), random)
}
