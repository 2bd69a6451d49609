//! Forms in the embedded store: load, ask the domain, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::counters::Counters;
use super::engine::tx::Tx;
use super::layout;
use super::{LARGE, SledStore, form_trash, idempotency, slugs, versions};
use crate::clock::Timestamp;
use crate::domain::definition::Change;
use crate::domain::filter::{FormFilter, SubmissionQuery};
use crate::domain::form::{Edit, Form, Retired, Version, WrittenVersion};
use crate::domain::past::Past;
use crate::domain::revision::Expected;
use crate::id::{FormId, WorkspaceId};
use crate::store::{Current, Forms, NewForm, Page, Restored, Retry, Step, StoreError};

#[async_trait]
impl Forms for SledStore {
    async fn insert_form(
        &self,
        workspace: WorkspaceId,
        new: NewForm,
        now: Timestamp,
    ) -> Result<Step<(FormId, Timestamp)>, StoreError> {
        let NewForm { id, definition, retry } = new;
        self.sweep_idempotency(retry.as_ref(), now);
        let (form, version) = Form::create(id, workspace, definition, now);
        let rows = Rows { head: layout::encode_form(&form)?, version: versions::encode(&version)? };
        let large = rows.version.len() > LARGE;
        let work = move |tx: &mut Tx<'_>| insert(tx, &form, rows, retry.as_ref());
        if large { self.engine.write_large(work).await } else { self.engine.write(work).await }
    }

    async fn find_form(&self, workspace: WorkspaceId, form: FormId) -> Result<Option<Current>, StoreError> {
        let Some(form) = self.live_form(workspace, form)? else { return Ok(None) };
        let key = layout::version(form.id, form.version);
        let version = match self.engine.get_decoded(&key, versions::decode)? {
            Some(version) => version,
            // A purge takes a form out of sight before its questions go.
            None if self.live_form(workspace, form.id)?.is_none() => return Ok(None),
            None => return self.engine.noting(Err(missing_version(&form))),
        };
        Ok(Some(Current { form, version }))
    }

    async fn find_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<FormId>, StoreError> {
        let body = self.engine.get(&layout::slug(workspace, slug))?;
        body.map(|body| layout::listed_form(&body)).transpose()
    }

    async fn list_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<Vec<(Arc<Form>, u64)>, StoreError> {
        let filter = filter.clone();
        // How many must be looked at to find so many is not known.
        let rows = if filter.takes_all() { limit } else { usize::MAX };
        self.scan_apart(rows, move |store| store.read_forms(workspace, &filter, after, limit)).await
    }

    async fn count_forms(&self, workspace: WorkspaceId, filter: &FormFilter) -> Result<u64, StoreError> {
        let filter = filter.clone();
        self.scan_apart(usize::MAX, move |store| store.count(workspace, &filter)).await
    }

    async fn find_version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Option<Arc<Version>>, StoreError> {
        match self.live_form(workspace, form)? {
            Some(_) => self.engine.get_decoded(&layout::version(form, number), versions::decode),
            None => Ok(None),
        }
    }

    async fn list_versions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<WrittenVersion>>, StoreError> {
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        // A version may be as long as a thousand submissions.
        self.scan_apart(usize::MAX, move |store| store.read_versions(form, before, limit)).await.map(Some)
    }

    async fn find_past(
        &self,
        form: &Form,
        query: &SubmissionQuery,
        present: &Version,
    ) -> Result<Past, StoreError> {
        let retired = retired(self.engine.get(&layout::retired(form.id))?)?;
        let past = Past::new(query, &present.questions, &retired);
        self.look_back(form, present.number, past).await
    }

    async fn update_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        change: Change,
        expected: Expected,
        now: Timestamp,
    ) -> Result<Step<Current>, StoreError> {
        let large = change.questions.is_some();
        let work = move |tx: &mut Tx<'_>| update(tx, workspace, form, &change, &expected, now);
        if large { self.engine.write_large(work).await } else { self.engine.write(work).await }
    }

    async fn try_update(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        change: Change,
        expected: Expected,
        now: Timestamp,
    ) -> Result<Step<Current>, StoreError> {
        let work = move |tx: &mut Tx<'_>| {
            let tried = update(tx, workspace, form, &change, &expected, now);
            tx.forget();
            tried
        };
        self.engine.write(work).await
    }

    async fn trash_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        expected: Expected,
        now: Timestamp,
    ) -> Result<Step<()>, StoreError> {
        self.engine.write_freeing(move |tx| form_trash::put_in(tx, workspace, form, &expected, now)).await
    }

    async fn restore_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        retry: Option<Retry>,
        now: Timestamp,
    ) -> Result<Step<Restored>, StoreError> {
        self.sweep_idempotency(retry.as_ref(), now);
        self.engine.write(move |tx| form_trash::restore(tx, workspace, form, retry.as_ref(), now)).await
    }

    async fn purge_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        expected: Expected,
    ) -> Result<Step<()>, StoreError> {
        let begun = self
            .engine
            .write_freeing(move |tx| form_trash::begin_purge(tx, workspace, form, &expected))
            .await?;
        if matches!(begun, Step::Done(())) {
            self.go_on_purging(form);
        }
        Ok(begun)
    }
}

impl SledStore {
    /// The form, unless it is in the trash.
    pub(super) fn live_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
    ) -> Result<Option<Arc<Form>>, StoreError> {
        Ok(self.form(workspace, form)?.filter(|form| form.deleted_at.is_none()))
    }

    /// The form, in the trash or not.
    pub(super) fn form(&self, workspace: WorkspaceId, form: FormId) -> Result<Option<Arc<Form>>, StoreError> {
        self.engine.get_decoded(&layout::form(workspace, form), layout::decode_form)
    }

    pub(super) fn counters(&self, form: FormId) -> Result<Counters, StoreError> {
        Counters::decode(self.engine.get(&layout::counters(form))?)
    }
}

/// The form as the writer sees it, in the trash or not.
pub(super) fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
) -> Result<Option<Arc<Form>>, StoreError> {
    tx.get_decoded(&layout::form(workspace, form), layout::decode_form)
}

/// The form as the writer sees it, unless it is in the trash.
pub(super) fn find_live(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
) -> Result<Option<Arc<Form>>, StoreError> {
    Ok(find(tx, workspace, form)?.filter(|form| form.deleted_at.is_none()))
}

pub(super) fn present_version(tx: &Tx<'_>, form: &Form) -> Result<Arc<Version>, StoreError> {
    let version = tx.get_decoded(&layout::version(form.id, form.version), versions::decode)?;
    version.ok_or_else(|| missing_version(form))
}

fn missing_version(form: &Form) -> StoreError {
    StoreError::Missing(format!("version {} of {}", form.version, form.id))
}

fn read_retired(tx: &Tx<'_>, form: FormId) -> Result<Retired, StoreError> {
    retired(tx.get(&layout::retired(form))?)
}

/// The ids of removed questions, in the row that has them if there is any.
fn retired(row: Option<Vec<u8>>) -> Result<Retired, StoreError> {
    row.map_or(Ok(Retired::new()), |body| layout::decode_retired(&body))
}

/// A new form's rows, made ready before the writer's turn.
struct Rows {
    head: Vec<u8>,
    version: Vec<u8>,
}

fn insert(
    tx: &mut Tx<'_>,
    form: &Form,
    rows: Rows,
    retry: Option<&Retry>,
) -> Result<Step<(FormId, Timestamp)>, StoreError> {
    let now = form.created_at;
    match idempotency::earlier(tx, retry, now)? {
        Some(Ok((earlier, _))) => return Ok(Step::Replayed((made_form(earlier.made), earlier.at))),
        Some(Err(why)) => return Ok(Step::Refused(why)),
        None => {}
    }
    let taken =
        tx.get(&layout::form_workspace(form.id))?.is_some() || tx.get(&layout::purge(form.id))?.is_some();
    if taken {
        return Ok(Step::Recheck);
    }
    if let Err(why) = slugs::give(tx, form)? {
        return Ok(Step::Refused(why));
    }
    tx.put(layout::form(form.workspace, form.id), rows.head);
    tx.put(layout::form_workspace(form.id), form.workspace.to_bytes().to_vec());
    tx.put(layout::live(form.workspace, now, form.id), Vec::new());
    tx.put(layout::version(form.id, form.version), rows.version);
    if let Some(retry) = retry {
        idempotency::remember(tx, retry, made(form.id), &[], now)?;
    }
    Ok(Step::Done((form.id, now)))
}

/// `form` as an idempotency record holds it, in the lower half.
pub(super) fn made(form: FormId) -> u128 {
    u128::from(u64::from_be_bytes(form.to_bytes()))
}

/// The form id that an idempotency record holds in its lower half.
fn made_form(made: u128) -> FormId {
    FormId::from_bytes((made as u64).to_be_bytes())
}

fn update(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    change: &Change,
    expected: &Expected,
    now: Timestamp,
) -> Result<Step<Current>, StoreError> {
    let Some(form) = find_live(tx, workspace, form)? else { return Ok(Step::Missing) };
    if let Err(why) = expected.check(form.revision) {
        return Ok(Step::Refused(why));
    }
    let current = present_version(tx, &form)?;
    let retired = match change.questions {
        Some(_) => read_retired(tx, form.id)?,
        None => Retired::new(),
    };
    match form.change(&current, &retired, change, now) {
        Ok(Edit::Unchanged) => Ok(Step::Done(Current { form, version: current })),
        Ok(Edit::Changed { form: changed, version, retired }) => {
            if let Err(why) = slugs::change(tx, &form, &changed)? {
                return Ok(Step::Refused(why));
            }
            let form = changed;
            tx.put(layout::form(workspace, form.id), layout::encode_form(&form)?);
            if let Some(retired) = &retired {
                tx.put(layout::retired(form.id), layout::encode_retired(retired)?);
            }
            if let Some(version) = &version {
                tx.put(layout::version(form.id, version.number), versions::encode(version)?);
            }
            let version = version.map_or(current, Arc::new);
            Ok(Step::Done(Current { form: Arc::from(form), version }))
        }
        Err(why) => Ok(Step::Refused(why)),
    }
}
