//! Submissions: load, ask the domain, write.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::counters::{self, Lock};
use super::forms::read_version;
use super::submission_insert::{NewRow, QueuedSubmission, open_form};
use super::submission_search::{COLUMNS, Place, SubmissionSearch, submission};
use super::transaction::{Params, Tx};
use super::values::number;
use super::{PostgresStore, cached_rows, events, idempotency};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::admission::{Admission, IdempotencyRecord, Refusal};
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{EditInfo, FoundIn, ReplacedState, Submission, SubmissionStatus};
use crate::id::{FormId, FormRef, SubmissionId, SubmissionRef};
use crate::store::search::{SearchGoal, prepare_filter};
use crate::store::step::Stop;
use crate::store::{
    CheckedEdit, IdempotencyKey, NewBatch, NewSubmission, PAGE_BYTES, Page, Result, StepResult, StoreError,
    SubmissionRows, Submissions, Traces,
};

/// Most submissions that are counted.
const MAX_COUNTED: i64 = 1_000_000;

/// Submissions of the trash that are erased per transaction.
const SWEEP: i64 = 20;

#[async_trait]
impl Submissions for PostgresStore {
    async fn accept_submission(
        &self,
        new: NewSubmission<'_>,
        now: Timestamp,
    ) -> Result<StepResult<SubmissionId>> {
        self.batchers.submissions.ask(QueuedSubmission::new(new, now)).await
    }

    async fn accept_batch(&self, new: NewBatch, now: Timestamp) -> Result<StepResult<String>> {
        let NewBatch { form, checked_revision, checked_version, rows, notify, idempotency_key, respond } =
            new;
        let row = |(answers, metadata): (Box<str>, Option<Box<str>>)| NewRow {
            form_version: checked_version,
            status: SubmissionStatus::Completed,
            answers,
            metadata,
        };
        let rows: Vec<_> = rows.into_iter().map(row).collect();
        let (rows, respond, key) = (&rows, &respond, idempotency_key.as_ref());
        self.step(|tx| async move {
            let open = open_form(&tx, form).await?.ok_or(Stop::Missing)?;
            let undecodable = |_text| StoreError::Undecodable("a recorded response".to_owned());
            let read = async |record: IdempotencyRecord| String::from_utf8(record.extra).map_err(undecodable);
            idempotency::replay(&tx, key, now, read).await?;
            if open.admit(checked_revision, now)? == Admission::Recheck {
                return Err(Stop::Recheck);
            }
            let ids = open.insert(&tx, rows, notify, now).await?;
            let response = respond(&ids);
            idempotency::insert_record(&tx, key, 0, response.as_bytes(), now).await?;
            Ok(response)
        })
        .await
    }

    async fn count_submissions(&self, form: FormRef) -> Result<u64> {
        let sql =
            "SELECT coalesce(sum(responses), 0)::BIGINT FROM counters JOIN forms ON forms.id = counters.form
                   WHERE forms.id = $1 AND forms.workspace = $2";
        self.count(sql, &[&form.id, &form.workspace]).await
    }

    async fn find_submission(&self, submission: SubmissionRef) -> Result<Option<Submission>> {
        let found = self.read(|tx| async move { find_in_live_form(&tx, submission).await }).await?;
        Ok(found.filter(|found| found.trashed_at().is_none()))
    }

    async fn find_original(&self, submission: SubmissionRef) -> Result<Option<Submission>> {
        self.read(|tx| async move {
            let Some(found) = find_in_live_form(&tx, submission).await? else { return Ok(None) };
            let original = read_as_of_edit(&tx, found, 0).await?;
            Ok(Some(Submission { deleted_at: None, ..original }))
        })
        .await
    }

    async fn list_submissions(
        &self,
        form: FormRef,
        filter: &SubmissionFilter,
        order: Order,
        after: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>> {
        let (place, filter, anywhere) = (Place::Live, filter.clone(), false);
        let search = SubmissionSearch { form: form.id, place, filter, order, after, anywhere };
        self.list(form, search, limit).await
    }

    async fn count_filtered(&self, form: FormRef, filter: &SubmissionFilter) -> Result<Option<u64>> {
        if filter.matches_all() {
            return self.count_submissions(form).await.map(Some);
        }
        if self.live_form(form).await?.is_none() {
            return Ok(Some(0));
        }
        let (place, order, after) = (Place::Live, Order::NewestFirst, None);
        let reads_answers = filter.reads_answers();
        let filter = filter.clone();
        let search = SubmissionSearch { form: form.id, place, filter, order, after, anywhere: false };
        if reads_answers {
            return Ok(self.search_submissions(search, SearchGoal::Count).await?.into_count());
        }
        let (from, to) = search.range(None);
        let sql = "SELECT count(*) FROM (SELECT 1 FROM submissions WHERE form = $1 AND deleted_at IS NULL
                   AND id >= $2 AND id < $3 LIMIT $4) counted";
        let count = self.count(sql, &[&form.id, &from, &to, &MAX_COUNTED]).await?;
        Ok(Some(count).filter(|count| *count < MAX_COUNTED as u64))
    }

    async fn list_trashed_submissions(
        &self,
        form: FormRef,
        status: SubmissionStatus,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<SubmissionRows>> {
        let place = match status {
            SubmissionStatus::Completed => Place::Trash,
            SubmissionStatus::Quarantined => Place::Quarantine,
        };
        let (filter, order) = (SubmissionFilter::default(), Order::NewestFirst);
        let search = SubmissionSearch { form: form.id, place, filter, order, after: before, anywhere: false };
        self.list(form, search, limit).await
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
        let sql = "SELECT number, answers, metadata, replaced_at FROM replaced_states
                   WHERE form = $1 AND submission = $2 AND number < $3 ORDER BY number DESC LIMIT 1";
        let (form, id) = (submission.form.id, submission.id);
        let (mut rows, mut bytes, mut before) = (Vec::new(), 0, before.map_or(i64::MAX, i64::from));
        let mut next = None;
        // One at a time, because each may be large.
        loop {
            let Some(row) = self.query_opt(sql, &[&form, &id, &before]).await? else { break };
            let state = ReplacedState {
                number: number(&row, 0),
                answers: row.get::<_, &str>(1).into(),
                metadata: row.get::<_, Option<&str>>(2).map(Into::into),
                replaced_at: row.get(3),
            };
            bytes += state.answers.len();
            if rows.len() == limit || bytes > PAGE_BYTES && !rows.is_empty() {
                next = rows.last().map(|last: &ReplacedState| last.number);
                break;
            }
            before = state.number.into();
            rows.push(state);
        }
        Ok(Some(Page { rows, next }))
    }

    async fn find_traces(
        &self,
        form: FormRef,
        query: SubmissionQuery,
        limit: usize,
    ) -> Result<Option<Traces>> {
        let Some(found) = self.batchers.forms.ask(form).await? else { return Ok(None) };
        let version = found.version;
        let stored = self.read(|tx| async move { read_version(&tx, form.id, version).await }).await?;
        let filter = match prepare_filter(&self.context.pool, stored, query).await? {
            Ok(filter) => filter,
            Err(violations) => return Ok(Some(Err(violations))),
        };
        let mut traces = Vec::new();
        for (place, found_in) in [
            (Place::Live, FoundIn::Answers),
            (Place::Trash, FoundIn::Trash),
            (Place::Quarantine, FoundIn::Trash),
        ] {
            let mut after = None;
            while traces.len() <= limit {
                let (filter, order) = (filter.clone(), Order::OldestFirst);
                let search = SubmissionSearch { form: form.id, place, filter, order, after, anywhere: true };
                let page = self.search_submissions(search, SearchGoal::Page(limit + 1)).await?.into_page();
                traces.extend(page.rows.iter().map(|one| (one.id, found_in)));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        self.search_history(form.id, &filter, limit, &mut traces).await?;
        Ok(Some(Ok(traces)))
    }

    async fn edit_submission(&self, checked: CheckedEdit, now: Timestamp) -> Result<StepResult<Submission>> {
        let CheckedEdit { submission: SubmissionRef { form, id }, seen_edits, edit } = &checked;
        let form = *form;
        self.step(|tx| async move {
            let live = lock_live(&tx, form).await?.ok_or(Stop::Missing)?;
            let old = find_live(&tx, form.id, *id).await?.ok_or(Stop::Missing)?;
            if old.edits() != *seen_edits {
                return Err(Stop::Recheck);
            }
            keep_state(&tx, (*seen_edits, &old), now, "").await?;
            let edited = EditInfo { at: now, count: seen_edits + 1 };
            let sql = "UPDATE submissions SET answers = $3, metadata = $4, edits = $5, edited_at = $6
                           WHERE form = $1 AND id = $2";
            let (answers, metadata) = (&*edit.answers, edit.metadata.as_deref());
            let count = i64::from(edited.count);
            tx.execute(sql, &[&form.id, id, &answers, &metadata, &count, &edited.at]).await?;
            let (answers, metadata) = (edit.answers.clone(), edit.metadata.clone());
            let new = Submission { answers, metadata, edited: Some(edited), ..old };
            let updated = (EventType::SubmissionUpdated, Subject::Submission(Box::new(new.clone())));
            events::record(&tx, &live, updated, None, now).await?;
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
        let expected = &expected;
        self.step(|tx| async move {
            let live = lock_live(&tx, form).await?.ok_or(Stop::Missing)?;
            let found = find_live(&tx, form.id, id).await?.ok_or(Stop::Missing)?;
            expected.check(found.revision())?;
            let sql = "UPDATE submissions SET deleted_at = $3 WHERE form = $1 AND id = $2";
            tx.execute(sql, &[&form.id, &id, &now]).await?;
            Ok(record_deletion(&tx, &live, id, now).await?)
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
        let key = idempotency_key.as_ref();
        self.step(|tx| async move {
            let live = lock_live(&tx, form).await?.ok_or(Stop::Missing)?;
            let found = find(&tx, form.id, id).await?.ok_or(Stop::Missing)?;
            replay_restoration(&tx, key, &found, now).await?;
            if found.deleted_at.is_none() || found.status != status {
                return Err(Stop::Refused(match status {
                    SubmissionStatus::Completed => Refusal::NotInTrash,
                    SubmissionStatus::Quarantined => Refusal::NotQuarantined,
                }));
            }
            live.check_capacity(counters::responses(&tx, form.id).await?)?;
            counters::add_responses(&tx, form.id, 1).await?;
            let sql = "UPDATE submissions SET deleted_at = NULL, is_quarantined = false
                           WHERE form = $1 AND id = $2";
            tx.execute(sql, &[&form.id, &id]).await?;
            let status = SubmissionStatus::Completed;
            let restored = Submission { status, deleted_at: None, ..found.clone() };
            match found.status {
                SubmissionStatus::Completed => {
                    events::resume_submission(&tx, form.workspace, &restored, now).await?;
                }
                SubmissionStatus::Quarantined => events::record_completed(&tx, &live, &[id]).await?,
            }
            let edits = restored.edits().into();
            idempotency::insert_record(&tx, key, edits, &[], now).await?;
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
        let expected = &expected;
        self.step(|tx| async move {
            counters::lock(&tx, form.id, Lock::Events).await?;
            let owner = cached_rows::form(&tx, form).await?.ok_or(Stop::Missing)?;
            let found = find(&tx, form.id, id).await?.ok_or(Stop::Missing)?;
            expected.check(found.revision())?;
            if found.deleted_at.is_none() {
                record_deletion(&tx, &owner, id, now).await?;
            }
            Ok(erase(&tx, form, &found, now).await?)
        })
        .await
    }
}

impl PostgresStore {
    /// Returns a form outside the trash.
    pub(super) async fn live_form(&self, form: FormRef) -> Result<Option<std::sync::Arc<Form>>> {
        Ok(self.batchers.forms.ask(form).await?.filter(|form| form.deleted_at.is_none()))
    }

    /// Lists a page; `None` if the form does not exist outside the trash.
    async fn list(
        &self,
        form: FormRef,
        search: SubmissionSearch,
        limit: usize,
    ) -> Result<Option<SubmissionRows>> {
        let found = self.search_submissions(search, SearchGoal::Page(limit)).await?;
        // Afterwards, because a form that is erased meanwhile loses its rows one after the other.
        Ok(self.live_form(form).await?.map(|_| found.into_page()))
    }

    /// Erases submissions that were trashed, or quarantined, before `cutoff`. Returns how many.
    pub(super) async fn erase_trashed_submissions(&self, cutoff: Timestamp) -> Result<usize> {
        let mut erased = 0;
        loop {
            let (done, read) = self.write(|tx| async move { sweep(&tx, cutoff).await }).await?;
            erased += done;
            if read < SWEEP as usize {
                return Ok(erased);
            }
        }
    }
}

/// Erases some submissions that were trashed before `cutoff`. Returns how many, and how many of them were found.
async fn sweep(tx: &Tx, cutoff: Timestamp) -> Result<(usize, usize)> {
    let sql = format!(
        "SELECT {COLUMNS}, forms.workspace FROM submissions JOIN forms ON forms.id = submissions.form
         WHERE submissions.deleted_at < $1 ORDER BY submissions.deleted_at, submissions.form, submissions.id LIMIT $2"
    );
    let mut due = tx.query(&sql, &[&cutoff, &SWEEP]).await?;
    // Forms are locked in this order everywhere.
    due.sort_by_key(|row| row.get::<_, FormId>(0));
    let mut erased = 0;
    for row in &due {
        let found = submission(row);
        let form = FormRef { workspace: row.get(9), id: found.form };
        counters::lock(tx, form.id, Lock::Events).await?;
        // It may have been restored before it was locked.
        let current = find(tx, form.id, found.id).await?;
        if let Some(current) = current.filter(|current| current.deleted_at == found.deleted_at) {
            erase(tx, form, &current, cutoff).await?;
            erased += 1;
        }
    }
    Ok((erased, due.len()))
}

/// Locks a form for a step that records events, and returns it, if it exists outside the trash.
async fn lock_live(tx: &Tx, form: FormRef) -> Result<Option<std::sync::Arc<Form>>> {
    counters::lock(tx, form.id, Lock::Events).await?;
    Ok(cached_rows::form(tx, form).await?.filter(|form| form.deleted_at.is_none()))
}

/// Finds a submission, in the trash, quarantined or neither.
pub(super) async fn find(tx: &Tx, form: FormId, id: SubmissionId) -> Result<Option<Submission>> {
    let sql = format!("SELECT {COLUMNS} FROM submissions WHERE form = $1 AND id = $2");
    Ok(tx.query_opt(&sql, &[&form, &id]).await?.map(|row| submission(&row)))
}

async fn find_live(tx: &Tx, form: FormId, id: SubmissionId) -> Result<Option<Submission>> {
    Ok(find(tx, form, id).await?.filter(|found| found.deleted_at.is_none()))
}

async fn find_in_live_form(tx: &Tx, of: SubmissionRef) -> Result<Option<Submission>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM submissions JOIN forms ON forms.id = submissions.form WHERE forms.id = $1
         AND forms.workspace = $2 AND forms.deleted_at IS NULL AND submissions.id = $3"
    );
    let row = tx.query_opt(&sql, &[&of.form.id, &of.form.workspace, &of.id]).await?;
    Ok(row.map(|row| submission(&row)))
}

/// Finds a submission as created, before any edit, in the trash, quarantined or neither.
pub(super) async fn find_original(tx: &Tx, form: FormId, id: SubmissionId) -> Result<Option<Submission>> {
    let Some(found) = find(tx, form, id).await? else { return Ok(None) };
    let deleted_at = found.deleted_at;
    let original = read_as_of_edit(tx, found, 0).await?;
    Ok(Some(Submission { deleted_at, ..original }))
}

/// Returns a submission as it was after its first `count` edits, given its current state.
async fn read_as_of_edit(tx: &Tx, now: Submission, count: u32) -> Result<Submission> {
    let sql = "SELECT number, form_version, answers, metadata, edited_at FROM replaced_states
               WHERE form = $1 AND submission = $2 AND number = $3";
    let row = tx.query_opt(sql, &[&now.form, &now.id, &i64::from(count)]).await?;
    Ok(match row {
        Some(row) => replaced_state(&now, &row),
        None => now,
    })
}

/// Reads an earlier state of a submission from the columns `number`, `form_version`, `answers`, `metadata` and `edited_at`.
pub(super) fn replaced_state(of: &Submission, row: &Row) -> Submission {
    let count = number(row, 0);
    Submission {
        id: of.id,
        form: of.form,
        form_version: number(row, 1),
        status: SubmissionStatus::Completed,
        answers: row.get::<_, &str>(2).into(),
        metadata: row.get::<_, Option<&str>>(3).map(Into::into),
        edited: row.get::<_, Option<Timestamp>>(4).map(|at| EditInfo { at, count }),
        deleted_at: None,
    }
}

/// Stops the restoration of a submission that an earlier request has carried out; since then it may have been trashed again,
/// and edited before that.
async fn replay_restoration(
    tx: &Tx,
    key: Option<&IdempotencyKey>,
    found: &Submission,
    now: Timestamp,
) -> Result<(), Stop<Submission>> {
    let Some(record) = idempotency::find_record(tx, key, now).await? else { return Ok(()) };
    let unknown = |_size| StoreError::Undecodable("an idempotency record".to_owned());
    let edits = u32::try_from(record?.result).map_err(unknown)?;
    let current = Submission { deleted_at: None, ..found.clone() };
    Err(Stop::Replayed(Box::new(read_as_of_edit(tx, current, edits).await?)))
}

/// Keeps the state of a submission that an edit has replaced; `conflict` says what to do if there is one with its number.
pub(super) async fn keep_state(
    tx: &Tx,
    (number, old): (u32, &Submission),
    replaced_at: Timestamp,
    conflict: &str,
) -> Result<()> {
    let sql = format!(
        "INSERT INTO replaced_states (form, submission, number, form_version, answers, metadata, edited_at, replaced_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) {conflict}"
    );
    let (number, version) = (i64::from(number), i64::from(old.form_version));
    let (answers, metadata) = (&*old.answers, old.metadata.as_deref());
    let edited_at = old.edited.map(|edited| edited.at);
    let params: Params<'_> =
        &[&old.form, &old.id, &number, &version, &answers, &metadata, &edited_at, &replaced_at];
    tx.execute(&sql, params).await.map(drop)
}

/// Records that a submission is no longer live.
async fn record_deletion(tx: &Tx, form: &Form, id: SubmissionId, now: Timestamp) -> Result<()> {
    counters::add_responses(tx, form.id, -1).await?;
    if form.deleted_at.is_some() {
        // Nobody is notified of what happens to a form in the trash.
        return Ok(());
    }
    let deleted = (EventType::SubmissionDeleted, Subject::DeletedSubmission(id));
    events::record(tx, form, deleted, None, now).await
}

/// Erases a submission, what edits have replaced, and what waits to be delivered of it.
async fn erase(tx: &Tx, form: FormRef, found: &Submission, now: Timestamp) -> Result<()> {
    for sql in [
        "DELETE FROM submissions WHERE form = $1 AND id = $2",
        "DELETE FROM replaced_states WHERE form = $1 AND submission = $2",
    ] {
        tx.execute(sql, &[&form.id, &found.id]).await?;
    }
    events::cancel_submission(tx, form, found.id, found.deleted_at.unwrap_or(now)).await
}

/// Deletes a batch of the submissions of an erased form. Returns whether there may be more.
pub(super) async fn erase_of_form(tx: &Tx, form: FormId, batch: i64) -> Result<bool> {
    for sql in [
        "DELETE FROM replaced_states WHERE form = $1 AND (submission, number) IN
            (SELECT submission, number FROM replaced_states WHERE form = $1 LIMIT $2)",
        "DELETE FROM submissions WHERE form = $1 AND id IN (SELECT id FROM submissions WHERE form = $1 LIMIT $2)",
    ] {
        if tx.execute(sql, &[&form, &batch]).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
