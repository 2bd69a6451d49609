//! Submissions in the embedded store: load, ask the domain, write.

use std::ops::Bound;

use async_trait::async_trait;

use super::counters::Counters;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::forms::{find, find_cached, find_live, missing_version};
use super::layout;
use super::row_source::RowSource;
use super::search::SearchGoal;
use super::submission_insert::{insert, insert_quarantined};
use super::submission_trash::{TrashSearch, begin_erasure, record_deletion, remove_from_trash};
use super::traces::TraceSearch;
use super::{
    Context, SledStore, Stop, delivery_upkeep, events, idempotency, locate, submission_codec,
    submission_trash,
};
use crate::clock::Timestamp;
use crate::domain::form::admission::{Admission, Refusal, admit};
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{EditInfo, FoundIn, ReplacedState, Submission, SubmissionStatus};
use crate::id::{FormRef, SubmissionId, SubmissionRef};
use crate::store::search::prepare_filter;
use crate::store::{
    CheckedEdit, IdempotencyKey, NewBatch, NewSubmission, Page, Result, StepResult, SubmissionRows,
    Submissions, Traces,
};

#[async_trait]
impl Submissions for SledStore {
    async fn accept_submission(
        &self,
        new: NewSubmission<'_>,
        now: Timestamp,
    ) -> Result<StepResult<SubmissionId>> {
        let NewSubmission { form, checked_revision, status, notify, idempotency_key, .. } = new;
        let encoded = submission_codec::encode(new.checked_version, status, new.answers, new.metadata, None)?;
        self.step_and_wake(WriteKind::Normal, form, move |tx, context| {
            let head = find_cached(tx, context, form)?;
            let head = head.filter(|form| form.deleted_at.is_none()).ok_or(Stop::Missing)?;
            let form = form.id;
            let earlier = idempotency::find_record(tx, idempotency_key.as_ref(), now)?;
            let counters = Counters::of(tx, form)?;
            match admit(&head, counters.responses, checked_revision, earlier, now)? {
                Admission::Store => {}
                Admission::Replay(earlier) => {
                    let id = SubmissionId::from_bytes(earlier.result.to_be_bytes());
                    return Err(Stop::Replayed(Box::new(id)));
                }
                Admission::Recheck => return Err(Stop::Recheck),
            }
            let (id, counters) = match status {
                SubmissionStatus::Completed => insert(tx, context, &head, counters, &encoded, notify, now)?,
                SubmissionStatus::Quarantined => {
                    insert_quarantined(tx, context, form, counters, &encoded, now)?
                }
            };
            counters.put(tx, form);
            let made = u128::from_be_bytes(id.to_bytes());
            idempotency::insert_record(tx, idempotency_key.as_ref(), made, Vec::new(), now);
            Ok(id)
        })
        .await
    }

    async fn accept_batch(&self, new: NewBatch, now: Timestamp) -> Result<StepResult<String>> {
        let NewBatch { form, checked_revision, rows, notify, idempotency_key, respond, .. } = new;
        let encode = |(answers, metadata): &(Box<str>, Option<Box<str>>)| {
            let status = SubmissionStatus::Completed;
            submission_codec::encode(new.checked_version, status, answers, metadata.as_deref(), None)
        };
        let rows = rows.iter().map(encode).collect::<Result<Vec<_>>>()?;
        let kind = WriteKind::for_size(rows.iter().map(Vec::len).sum());
        self.step_and_wake(kind, form, move |tx, context| {
            let head = find_cached(tx, context, form)?;
            let head = head.filter(|form| form.deleted_at.is_none()).ok_or(Stop::Missing)?;
            idempotency::replay(tx, idempotency_key.as_ref(), now, |record| {
                String::from_utf8(record.extra).map_err(|_invalid| layout::undecodable("a recorded response"))
            })?;
            let mut counters = Counters::of(tx, head.id)?;
            if admit(&head, counters.responses, checked_revision, None, now)? == Admission::Recheck {
                return Err(Stop::Recheck);
            }
            let mut ids = Vec::with_capacity(rows.len());
            for row in &rows {
                let has_place = head.check_capacity(counters.responses).is_ok();
                let stored = has_place.then(|| insert(tx, context, &head, counters, row, notify, now));
                ids.push(stored.transpose()?.map(|(id, after)| {
                    counters = after;
                    id
                }));
            }
            counters.put(tx, head.id);
            let response = respond(&ids);
            idempotency::insert_record(tx, idempotency_key.as_ref(), 0, response.clone().into_bytes(), now);
            Ok(response)
        })
        .await
    }

    async fn count_submissions(&self, form: FormRef) -> Result<u64> {
        match self.form(form)? {
            Some(form) => Ok(Counters::of(&self.reader, form.id)?.responses),
            None => Ok(0),
        }
    }

    async fn find_submission(&self, submission: SubmissionRef) -> Result<Option<Submission>> {
        if self.live_form(submission.form)?.is_none() {
            return Ok(None);
        }
        let found = submission_trash::read_any(&self.reader, submission.form.id, submission.id)?;
        Ok(found.filter(|found| found.trashed_at().is_none()))
    }

    async fn find_original(&self, submission: SubmissionRef) -> Result<Option<Submission>> {
        if self.live_form(submission.form)?.is_none() {
            return Ok(None);
        }
        let found = submission_trash::read_original(&self.reader, submission.form.id, submission.id)?;
        Ok(found.map(|found| Submission { deleted_at: None, ..found }))
    }

    async fn list_submissions(
        &self,
        form: FormRef,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>> {
        let goal = SearchGoal::Page(limit);
        let found = self.search_submissions(form, filter, order, after, goal).await?;
        Ok(found.map(|found| found.into_page()))
    }

    async fn count_filtered(&self, form: FormRef, filter: &SubmissionFilter) -> Result<Option<u64>> {
        if filter.matches_all() {
            return self.count_submissions(form).await.map(Some);
        }
        let (order, goal) = (Order::NewestFirst, SearchGoal::Count);
        let found = self.search_submissions(form, filter, order, None, goal).await?;
        Ok(found.map_or(Some(0), |found| found.into_count()))
    }

    async fn list_trashed_submissions(
        &self,
        form: FormRef,
        status: SubmissionStatus,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>> {
        if self.live_form(form)?.is_none() {
            return Ok(None);
        }
        let range = layout::trashed_submissions(form.id, before);
        let (search, goal) = (TrashSearch(status), SearchGoal::Page(limit));
        let found = self.search(search, range, Direction::Descending, goal).await?;
        Ok(Some(found.into_page()))
    }

    async fn list_history(
        &self,
        submission: SubmissionRef,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<ReplacedState, u32>>> {
        if self.find_submission(submission).await?.is_none() {
            return Ok(None);
        }
        let (form, id) = (submission.form.id, submission.id);
        let decode = move |key: &[u8], body: &[u8]| {
            let (replaced_at, view) = submission_codec::read_with_timestamp(body)?;
            let Submission { answers, metadata, .. } = view.to_submission(form, id)?;
            Ok(ReplacedState {
                number: layout::last(key, u32::from_be_bytes)?,
                answers,
                metadata,
                replaced_at,
            })
        };
        let range = layout::history(form, id, before);
        self.read_page(range, (limit, limit), decode, |one| one.number).await.map(Some)
    }

    async fn find_traces(
        &self,
        form: FormRef,
        query: SubmissionQuery,
        limit: usize,
    ) -> Result<Option<Traces>> {
        let Some(found) = self.form(form)? else { return Ok(None) };
        let stored = self.reader.read(&layout::version(form.id, found.version), layout::decode_version)?;
        let stored = stored.ok_or_else(|| missing_version(form.id, found.version))?;
        let filter = match prepare_filter(&self.pool, stored, query).await? {
            Ok(filter) => filter,
            Err(violations) => return Ok(Some(Err(violations))),
        };
        let mut traces = Vec::new();
        for (place, mut range) in [
            (FoundIn::Answers, layout::blocks(form.id)),
            (FoundIn::Trash, layout::trashed_submissions(form.id, None)),
            (FoundIn::History, layout::replaced_states(form.id)),
        ] {
            while traces.len() <= limit {
                let search = TraceSearch { form: form.id, filter: filter.clone(), place };
                let goal = SearchGoal::Page(limit + 1);
                let page = self.search(search, range.clone(), Direction::Ascending, goal).await?.into_page();
                traces.extend(page.rows);
                // Of a submission with many replaced states, one counts.
                traces.dedup();
                let Some(last) = page.next else { break };
                range.0 = Bound::Excluded(last);
            }
        }
        Ok(Some(Ok(traces)))
    }

    async fn edit_submission(&self, checked: CheckedEdit, now: Timestamp) -> Result<StepResult<Submission>> {
        let kind = WriteKind::for_size(checked.edit.answers.len());
        let CheckedEdit { submission: SubmissionRef { form, id }, seen_edits, edit } = checked;
        self.step_and_wake(kind, form, move |tx, context| {
            let live = find_live(tx, form)?.ok_or(Stop::Missing)?;
            let found = locate::find(tx, form.id, id)?.ok_or(Stop::Missing)?;
            let old = &found.submission;
            if old.edits() != seen_edits {
                return Err(Stop::Recheck);
            }
            let replaced = submission_codec::encode_with_timestamp(old, now)?;
            tx.put(layout::replaced_state(form.id, id, seen_edits), replaced);
            let edited = Some(EditInfo { at: now, count: seen_edits + 1 });
            let new = Submission { answers: edit.answers, metadata: edit.metadata, edited, ..old.clone() };
            found.replace(tx, &new)?;
            events::record_file_change(tx, &live)?;
            let updated = (EventType::SubmissionUpdated, Subject::Submission(Box::new(new.clone())));
            events::record(tx, context, &live, updated, None, now)?;
            Ok(new)
        })
        .await
    }

    async fn trash_submission(
        &self,
        submission: SubmissionRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>> {
        let SubmissionRef { form, id } = submission;
        self.step_and_wake(WriteKind::Reclaim, form, move |tx, context| {
            let live = find_live(tx, form)?.ok_or(Stop::Missing)?;
            let found = locate::find(tx, form.id, id)?.ok_or(Stop::Missing)?;
            expected.check(found.submission.revision())?;
            let trashed = submission_codec::encode_with_timestamp(&found.remove(tx)?, now)?;
            tx.put(layout::trashed_submission(form.id, id), trashed);
            tx.put(layout::trash_sweep(now, form.id, id), Vec::new());
            Ok(record_deletion(tx, context, &live, id, now)?)
        })
        .await
    }

    async fn restore_submission(
        &self,
        submission: SubmissionRef,
        status: SubmissionStatus,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Submission>> {
        let SubmissionRef { form, id } = submission;
        self.step_and_wake(WriteKind::Normal, form, move |tx, _| {
            let form = find_live(tx, form)?.ok_or(Stop::Missing)?;
            let live = locate::find(tx, form.id, id)?.map(|found| found.submission);
            let in_trash = submission_trash::read(tx, form.id, id)?;
            let found = live.as_ref().or(in_trash.as_ref()).ok_or(Stop::Missing)?;
            idempotency::replay(tx, idempotency_key.as_ref(), now, |record| {
                // Since then it may have been trashed again, and edited before that.
                let now = Submission { deleted_at: None, ..found.clone() };
                let unknown = |_size| layout::undecodable("an idempotency record");
                let edits = u32::try_from(record.result).map_err(unknown)?;
                locate::read_as_of_edit(tx, now, edits)
            })?;
            let trashed = in_trash.filter(|found| found.status == status).ok_or(match status {
                SubmissionStatus::Completed => Refusal::NotInTrash,
                SubmissionStatus::Quarantined => Refusal::NotQuarantined,
            })?;
            let counters = Counters::of(tx, form.id)?;
            form.check_capacity(counters.responses)?;
            remove_from_trash(tx, &trashed);
            let restored = Submission { status: SubmissionStatus::Completed, deleted_at: None, ..trashed };
            let block = locate::insert_restored(tx, &restored)?;
            // New submissions are stored in the last block, or after it.
            let counters =
                Counters { responses: counters.responses + 1, block: counters.block.max(block), ..counters };
            let counters = match status {
                SubmissionStatus::Completed => {
                    delivery_upkeep::resume_submission(tx, form.workspace, &restored, now)?;
                    events::record_file_change(tx, &form)?;
                    counters
                }
                SubmissionStatus::Quarantined => events::record_completed(tx, &form, counters, id)?,
            };
            counters.put(tx, form.id);
            let edits = restored.edits().into();
            idempotency::insert_record(tx, idempotency_key.as_ref(), edits, Vec::new(), now);
            Ok(restored)
        })
        .await
    }

    async fn purge_submission(
        &self,
        submission: SubmissionRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>> {
        let SubmissionRef { form, id } = submission;
        let work = move |tx: &mut Tx<'_>, context: &Context| {
            let owner = find(tx, form)?.ok_or(Stop::Missing)?;
            let live = locate::find(tx, form.id, id)?;
            let in_trash = submission_trash::read(tx, form.id, id)?;
            let found = live.as_ref().map(|found| &found.submission).or(in_trash.as_ref());
            let found = found.cloned().ok_or(Stop::Missing)?;
            expected.check(found.revision())?;
            match live {
                Some(located) => {
                    located.remove(tx)?;
                    record_deletion(tx, context, &owner, id, now)?;
                }
                None => remove_from_trash(tx, &found),
            }
            Ok(begin_erasure(tx, form.workspace, &found, found.deleted_at.unwrap_or(now))?)
        };
        let purged = self.step_and_wake(WriteKind::Reclaim, form, work).await?;
        if matches!(&purged, StepResult::Done(has_rows) if *has_rows) {
            self.resume_submission_purge(form.id, id);
        }
        Ok(purged.map(drop))
    }
}
