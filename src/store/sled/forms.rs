//! Forms in the embedded store: load, ask the domain, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::counters::Counters;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::form_search::FormSearch;
use super::form_trash::remove_form;
use super::layout;
use super::row_source::RowSource;
use super::search::SearchGoal;
use super::{Context, SledStore, Stop, decoded_cache, events, idempotency, slugs};
use crate::clock::Timestamp;
use crate::domain::form::filter::FormFilter;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::integration::Integration;
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::revision::ExpectedRevision;
use crate::id::{FormId, FormRef, WorkspaceId};
use crate::store::queue::StoredQueue;
use crate::store::{
    FormRows, FormUpdate, Forms, IdempotencyKey, NewForm, Restored, Result, StepResult, StoreError,
    VersionRows,
};

#[async_trait]
impl Forms for SledStore {
    async fn insert_form(&self, new: NewForm) -> Result<StepResult<(FormId, Timestamp)>> {
        let NewForm { form, version, idempotency_key } = new;
        let version = layout::to_json(&version)?;
        let kind = WriteKind::for_size(version.len());
        let rows = EncodedRows { head: layout::to_json(&form)?, version: Some(version), retired: None };
        self.step(kind, move |tx, _| {
            let now = form.created_at;
            idempotency::replay(tx, idempotency_key.as_ref(), now, |record| {
                Ok((FormId::from_bytes((record.result as u64).to_be_bytes()), record.at))
            })?;
            if tx.get(&layout::deleted_workspace(form.workspace))?.is_some() {
                return Err(Stop::Missing);
            }
            for row in [layout::form_workspace(form.id), layout::purge(form.id)] {
                if tx.get(&row)?.is_some() {
                    return Err(Stop::Recheck);
                }
            }
            slugs::claim(tx, &form)?;
            rows.put(tx, &form);
            put_new_queues(tx, &form, &[])?;
            tx.put(layout::form_workspace(form.id), form.workspace.to_bytes().to_vec());
            tx.put(layout::list_entry(&form), Vec::new());
            let made = u64::from_be_bytes(form.id.to_bytes()).into();
            idempotency::insert_record(tx, idempotency_key.as_ref(), made, Vec::new(), now);
            Ok((form.id, now))
        })
        .await
    }

    async fn find_form(&self, form: FormRef) -> Result<Option<Arc<Form>>> {
        self.live_form(form)
    }

    async fn find_form_workspace(&self, form: FormId) -> Result<Option<WorkspaceId>> {
        workspace_of(&self.reader, form)
    }

    async fn find_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<FormId>> {
        self.reader.read(&layout::slug(workspace, slug), |body| layout::last(body, FormId::from_bytes))
    }

    async fn list_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<FormRows> {
        let range = layout::list(workspace, filter.trashed, after);
        let search = FormSearch { workspace, filter: filter.clone() };
        Ok(self.search(search, range, Direction::Descending, SearchGoal::Page(limit)).await?.into_page())
    }

    async fn count_forms(&self, workspace: WorkspaceId, filter: &FormFilter) -> Result<Option<u64>> {
        let range = layout::list(workspace, filter.trashed, None);
        let search = FormSearch { workspace, filter: filter.clone() };
        Ok(self.search(search, range, Direction::Descending, SearchGoal::Count).await?.into_count())
    }

    async fn find_version(&self, form: FormRef, number: u32) -> Result<Option<StoredVersion>> {
        if self.live_form(form)?.is_none() {
            return Ok(None);
        }
        if let Some(found) = self.reader.read(&layout::version(form.id, number), layout::decode_version)? {
            return Ok(Some(found));
        }
        // A purge hides a form before it deletes the form's versions.
        match self.live_form(form)? {
            Some(live) if number <= live.version => {
                self.reader.track_damage(Err(missing_version(form.id, number)))
            }
            _ => Ok(None),
        }
    }

    async fn find_retired(&self, form: FormRef) -> Result<RetiredIds> {
        if self.live_form(form)?.is_none() {
            return Ok(RetiredIds::new());
        }
        let decode = |body: &[u8]| layout::from_json("the ids of removed questions", body);
        Ok(self.reader.read(&layout::retired(form.id), decode)?.unwrap_or_default())
    }

    async fn list_versions(
        &self,
        form: FormRef,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<VersionRows>> {
        if self.live_form(form)?.is_none() {
            return Ok(None);
        }
        let decode = |_: &[u8], body: &[u8]| layout::decode_version(body);
        // A version may be as large as a thousand submissions, so this always runs on the pool.
        let page =
            self.read_page(layout::versions(form.id, before), (limit, usize::MAX), decode, |one| one.number);
        page.await.map(Some)
    }

    async fn replace_form(&self, workspace: WorkspaceId, update: FormUpdate) -> Result<StepResult<()>> {
        let rows = EncodedRows {
            head: layout::to_json(&update.form)?,
            version: update.version.as_ref().map(layout::to_json).transpose()?,
            retired: update.retired.as_ref().map(layout::to_json).transpose()?,
        };
        let kind = WriteKind::for_size(rows.version.as_ref().map_or(0, Vec::len));
        let id = workspace.form(update.form.id);
        // The transaction only compares revisions and stores bytes: the edit was computed before.
        let work = move |tx: &mut Tx<'_>, context: &Context| {
            let form = &update.form;
            let current = find_live(tx, id)?.ok_or(Stop::Missing)?;
            if current.revision != update.seen_revision {
                return Err(Stop::Recheck);
            }
            slugs::replace(tx, &current, form)?;
            rows.put(tx, form);
            put_new_queues(tx, form, &current.integrations)?;
            events::record_file_change(tx, form)?;
            let mut revived = Vec::new();
            for integration in &update.resumed {
                let queue = (form.id, *integration);
                let resumed = StoredQueue::read(tx, queue)?.resumed(update.now);
                revived.extend(resumed.revival.map(|_| *integration));
                resumed.put(tx, queue)?;
            }
            if let Some(event) = current.status_event(form.status) {
                events::record(tx, context, form, (event, Subject::Form), None, form.updated_at)?;
            }
            if let Some((key, response)) = update.response {
                idempotency::insert_record(tx, Some(&key), 0, response.into_bytes(), form.updated_at);
            }
            let removed = current.integrations.iter().filter(|one| form.integration(one.id).is_none());
            Ok((removed.map(|one| one.id).collect::<Vec<_>>(), revived))
        };
        let replaced = self.step_and_wake(kind, id, work).await?;
        if let StepResult::Done((removed, revived)) = &replaced {
            removed.iter().for_each(|one| self.drop_queue(id.queue(*one)));
            revived.iter().for_each(|one| self.continue_revival(id.queue(*one)));
        }
        Ok(replaced.map(drop))
    }

    async fn trash_form(
        &self,
        form: FormRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>> {
        self.step_and_wake(WriteKind::Reclaim, form, move |tx, context| {
            let live = find_live(tx, form)?.ok_or(Stop::Missing)?;
            expected.check(live.revision)?;
            slugs::release(tx, &live);
            tx.delete(layout::list_entry(&live));
            events::record(tx, context, &live, (EventType::FormDeleted, Subject::Form), None, now)?;
            let trashed = live.trashed(now);
            tx.put(layout::form(form), layout::to_json(&trashed)?);
            tx.put(layout::list_entry(&trashed), Vec::new());
            Ok(())
        })
        .await
    }

    async fn restore_form(
        &self,
        form: FormRef,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Restored>> {
        self.step_and_wake(WriteKind::Normal, form, move |tx, _| {
            let found = find(tx, form)?.ok_or(Stop::Missing)?;
            idempotency::replay(tx, idempotency_key.as_ref(), now, |record| {
                let (form, responses) = layout::from_json("what was restored", &record.extra)?;
                restored_form(tx, form, responses, record.at)
            })?;
            let restored = found.restored()?;
            slugs::claim(tx, &restored)?;
            tx.put(layout::form(form), layout::to_json(&restored)?);
            tx.delete(layout::list_entry(&found));
            tx.put(layout::list_entry(&restored), Vec::new());
            let responses = Counters::of(tx, form.id)?.responses;
            let given = layout::to_json(&(&restored, responses))?;
            idempotency::insert_record(tx, idempotency_key.as_ref(), 0, given, now);
            Ok(restored_form(tx, restored, responses, now)?)
        })
        .await
    }

    async fn purge_form(&self, form: FormRef, expected: ExpectedRevision) -> Result<StepResult<()>> {
        let work = move |tx: &mut Tx<'_>, _: &Context| {
            let found = find(tx, form)?.ok_or(Stop::Missing)?;
            expected.check(found.revision)?;
            remove_form(tx, &found)?;
            Ok(())
        };
        let begun = self.step(WriteKind::Reclaim, work).await?;
        if matches!(begun, StepResult::Done(())) {
            self.resume_purge(form);
        }
        Ok(begun)
    }
}

impl SledStore {
    pub(super) fn live_form(&self, form: FormRef) -> Result<Option<Arc<Form>>> {
        Ok(self.form(form)?.filter(|form| form.deleted_at.is_none()))
    }

    /// Returns a form, in the trash or not.
    pub(super) fn form(&self, form: FormRef) -> Result<Option<Arc<Form>>> {
        decoded_cache::read(&self.context.forms, &self.reader, &layout::form(form), layout::decode_form)
    }
}

/// Returns the workspace of a form; `None` if the form does not exist or is being purged.
pub(super) fn workspace_of(rows: &impl RowSource, form: FormId) -> Result<Option<WorkspaceId>> {
    rows.read(&layout::form_workspace(form), |body| layout::last(body, WorkspaceId::from_bytes))
}

/// Reads a form within a transaction, in the trash or not.
pub(super) fn find(tx: &Tx<'_>, form: FormRef) -> Result<Option<Form>> {
    tx.read(&layout::form(form), layout::decode_form)
}

/// Reads a form within a transaction, in the trash or not, from the cache unless the group has changed it.
pub(super) fn find_cached(tx: &Tx<'_>, context: &Context, form: FormRef) -> Result<Option<Arc<Form>>> {
    let key = layout::form(form);
    match tx.is_staged(&key) {
        true => Ok(find(tx, form)?.map(Arc::new)),
        false => decoded_cache::read(&context.forms, tx, &key, layout::decode_form),
    }
}

pub(super) fn find_live(tx: &Tx<'_>, form: FormRef) -> Result<Option<Form>> {
    Ok(find(tx, form)?.filter(|form| form.deleted_at.is_none()))
}

pub(super) fn missing_version(form: FormId, number: u32) -> StoreError {
    StoreError::Missing(format!("version {number} of {form}"))
}

/// Builds the result of a restore with the questions as they are in this transaction, so that the caller needs no
/// second read.
fn restored_form(tx: &Tx<'_>, form: Form, responses: u64, at: Timestamp) -> Result<Restored> {
    let version = tx.read(&layout::version(form.id, form.version), layout::decode_version)?;
    let version = version.ok_or_else(|| missing_version(form.id, form.version))?;
    Ok(Restored { form: Arc::new(form), version, responses, at })
}

/// Rows of a new or changed form, encoded before the transaction.
struct EncodedRows {
    head: Vec<u8>,
    version: Option<Vec<u8>>,
    retired: Option<Vec<u8>>,
}

impl EncodedRows {
    fn put(self, tx: &mut Tx<'_>, form: &Form) {
        tx.put(layout::form(form.reference()), self.head);
        if let Some(version) = self.version {
            tx.put(layout::version(form.id, form.version), version);
        }
        if let Some(retired) = self.retired {
            tx.put(layout::retired(form.id), retired);
        }
    }
}

/// Creates the queues of integrations that are not among `earlier` ones.
fn put_new_queues(tx: &mut Tx<'_>, form: &Form, earlier: &[Integration]) -> Result<()> {
    for integration in &form.integrations {
        if earlier.iter().all(|one| one.id != integration.id) {
            StoredQueue::default().put(tx, (form.id, integration.id))?;
        }
    }
    Ok(())
}
