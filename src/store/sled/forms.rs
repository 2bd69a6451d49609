//! Forms in the embedded store: load, ask the domain, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::layout::{self, Counters};
use super::{PAGE_BYTES, SledStore, retries};
use crate::clock::Timestamp;
use crate::domain::definition::Change;
use crate::domain::form::{Edit, Form, Retired, Version};
use crate::domain::revision::Expected;
use crate::id::{FormId, WorkspaceId};
use crate::store::{Current, Forms, NewForm, Page, Retry, Step, StoreError};

/// Keys a slice of a purge deletes at most.
const SLICE: usize = 100;

/// Bytes of questions from which on a new form gets a group of its own.
const LARGE: usize = 256 * 1024;

#[async_trait]
impl Forms for SledStore {
    async fn insert_form(
        &self,
        workspace: WorkspaceId,
        new: NewForm,
        now: Timestamp,
    ) -> Result<Step<(FormId, Timestamp)>, StoreError> {
        let NewForm { id, definition, retry } = new;
        let (form, version) = Form::create(id, workspace, definition, now);
        let rows = Rows { head: layout::encode_form(&form)?, version: layout::encode_version(&version)? };
        let large = rows.version.len() > LARGE;
        let work = move |tx: &mut Tx<'_>| insert(tx, &form, rows, retry.as_ref());
        if large { self.engine.write_large(work).await } else { self.engine.write(work).await }
    }

    async fn find_form(&self, workspace: WorkspaceId, form: FormId) -> Result<Option<Current>, StoreError> {
        let Some(form) = self.live_form(workspace, form)? else { return Ok(None) };
        let key = layout::version(form.id, form.version);
        let version = match self.engine.get_decoded(&key, layout::decode_version)? {
            Some(version) => version,
            // A purge takes a form out of sight before its questions go.
            None if self.live_form(workspace, form.id)?.is_none() => return Ok(None),
            None => return self.engine.noting(Err(missing_version(&form))),
        };
        Ok(Some(Current { form, version }))
    }

    async fn list_forms(
        &self,
        workspace: WorkspaceId,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<Vec<(Arc<Form>, u64)>, StoreError> {
        self.scan_apart(limit, move |store| {
            let entries =
                store.engine.scan(layout::live_forms(workspace, after), Direction::Descending, limit)?;
            let mut forms = Vec::with_capacity(entries.len());
            for (entry, _) in entries {
                // A form that went to the trash since the scan is no longer to be listed.
                if let Some(form) = store.live_form(workspace, layout::listed_form(&entry)?)? {
                    let responses = store.counters(form.id)?.responses;
                    forms.push((form, responses));
                }
            }
            Ok(forms)
        })
        .await
    }

    async fn find_version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Option<Arc<Version>>, StoreError> {
        match self.live_form(workspace, form)? {
            Some(_) => self.engine.get_decoded(&layout::version(form, number), layout::decode_version),
            None => Ok(None),
        }
    }

    async fn list_versions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<Page<Version>>, StoreError> {
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        // A version may be as long as a thousand submissions.
        self.scan_apart(usize::MAX, move |store| store.read_versions(form, before, limit)).await.map(Some)
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

    async fn trash_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        expected: Expected,
        now: Timestamp,
    ) -> Result<Step<()>, StoreError> {
        self.engine.write_freeing(move |tx| trash(tx, workspace, form, &expected, now)).await
    }

    async fn purge_form(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        expected: Expected,
    ) -> Result<Step<()>, StoreError> {
        let begun = self.engine.write_freeing(move |tx| begin_purge(tx, workspace, form, &expected)).await?;
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
        let form = self.engine.get_decoded(&layout::form(workspace, form), layout::decode_form)?;
        Ok(form.filter(|form| form.deleted_at.is_none()))
    }

    fn read_versions(
        &self,
        form: FormId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Page<Version>, StoreError> {
        let range = layout::versions(form, before);
        let (rows, _) = self.engine.scan_within(range, Direction::Descending, limit, PAGE_BYTES)?;
        let rows: Vec<_> =
            rows.iter().map(|(_, body)| layout::decode_version(body)).collect::<Result<_, _>>()?;
        // Their numbers have no gaps.
        let more = rows.last().is_some_and(|last| last.number > 1);
        Ok(Page { rows, more })
    }

    pub(super) fn counters(&self, form: FormId) -> Result<Counters, StoreError> {
        let body = self.engine.get(&layout::counters(form))?;
        body.map_or(Ok(Counters::default()), |body| Counters::decode(&body))
    }

    /// Erases what is left of a purged form, bit by bit behind the others' backs.
    pub(super) fn go_on_purging(&self, form: FormId) {
        self.engine.background(move |tx| purge_slice(tx, form));
    }
}

/// The form as the writer sees it, in the trash or not.
fn find(tx: &Tx<'_>, workspace: WorkspaceId, form: FormId) -> Result<Option<Arc<Form>>, StoreError> {
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

fn missing_version(form: &Form) -> StoreError {
    StoreError::Damaged(format!("version {} of {} is missing", form.version, form.id))
}

fn read_retired(tx: &Tx<'_>, form: FormId) -> Result<Retired, StoreError> {
    tx.get(&layout::retired(form))?.map_or(Ok(Retired::new()), |body| layout::decode_retired(&body))
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
    if let Some(retry) = retry {
        let earlier = retries::recall(tx, retry)?.and_then(|earlier| earlier.answer(retry.body, now));
        match earlier {
            Some(Ok(earlier)) => return Ok(Step::Replayed((made_form(earlier.made), earlier.at))),
            Some(Err(why)) => return Ok(Step::Refused(why)),
            None => {}
        }
    }
    let taken =
        tx.get(&layout::form_workspace(form.id))?.is_some() || tx.get(&layout::purge(form.id))?.is_some();
    if taken {
        return Ok(Step::Recheck);
    }
    tx.put(layout::form(form.workspace, form.id), rows.head);
    tx.put(layout::form_workspace(form.id), form.workspace.to_bytes().to_vec());
    tx.put(layout::live(form.workspace, now, form.id), Vec::new());
    tx.put(layout::version(form.id, form.version), rows.version);
    if let Some(retry) = retry {
        retries::remember(tx, retry, u128::from(u64::from_be_bytes(form.id.to_bytes())), now)?;
    }
    Ok(Step::Done((form.id, now)))
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
    if let Err(why) = expected.check(&form) {
        return Ok(Step::Refused(why));
    }
    let current = tx.get_decoded(&layout::version(form.id, form.version), layout::decode_version)?;
    let current = current.ok_or_else(|| missing_version(&form))?;
    let retired = match change.questions {
        Some(_) => read_retired(tx, form.id)?,
        None => Retired::new(),
    };
    match form.change(&current, &retired, change, now) {
        Ok(Edit::Unchanged) => Ok(Step::Done(Current { form, version: current })),
        Ok(Edit::Changed { form, version, retired }) => {
            tx.put(layout::form(workspace, form.id), layout::encode_form(&form)?);
            if let Some(retired) = &retired {
                tx.put(layout::retired(form.id), layout::encode_retired(retired)?);
            }
            if let Some(version) = &version {
                tx.put(layout::version(form.id, version.number), layout::encode_version(version)?);
            }
            let version = version.map_or(current, Arc::new);
            Ok(Step::Done(Current { form: Arc::from(form), version }))
        }
        Err(why) => Ok(Step::Refused(why)),
    }
}

fn trash(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    expected: &Expected,
    now: Timestamp,
) -> Result<Step<()>, StoreError> {
    let Some(live) = find_live(tx, workspace, form)? else { return Ok(Step::Missing) };
    if let Err(why) = expected.check(&live) {
        return Ok(Step::Refused(why));
    }
    let form = Form { deleted_at: Some(now), revision: live.revision + 1, ..Form::clone(&live) };
    tx.put(layout::form(workspace, form.id), layout::encode_form(&form)?);
    tx.delete(layout::live(workspace, form.created_at, form.id));
    tx.put(layout::trashed(workspace, now, form.id), Vec::new());
    Ok(Step::Done(()))
}

/// Takes the form out of everyone's sight, and notes that its rows are to go.
fn begin_purge(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    expected: &Expected,
) -> Result<Step<()>, StoreError> {
    let Some(form) = find(tx, workspace, form)? else { return Ok(Step::Missing) };
    if let Err(why) = expected.check(&form) {
        return Ok(Step::Refused(why));
    }
    tx.delete(layout::form(workspace, form.id));
    tx.delete(layout::form_workspace(form.id));
    tx.delete(layout::counters(form.id));
    tx.delete(layout::retired(form.id));
    match form.deleted_at {
        Some(deleted) => tx.delete(layout::trashed(workspace, deleted, form.id)),
        None => tx.delete(layout::live(workspace, form.created_at, form.id)),
    }
    tx.put(layout::purge(form.id), Vec::new());
    Ok(Step::Done(()))
}

/// Deletes some of what is left of `form`. What is left is its own record of progress.
fn purge_slice(tx: &mut Tx<'_>, form: FormId) -> Result<Progress, StoreError> {
    for range in [layout::submissions(form, None), layout::versions(form, None)] {
        // Nobody else changes rows of a form that is gone, so what the index has is all there is.
        let keys = tx.stored_keys(range, SLICE)?;
        if !keys.is_empty() {
            keys.into_iter().for_each(|key| tx.delete(key));
            return Ok(Progress::More);
        }
    }
    tx.delete(layout::purge(form));
    Ok(Progress::Done)
}
