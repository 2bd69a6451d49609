//! Trashing, restoring and purging forms.

use std::sync::Arc;

use super::counters::Counters;
use super::delivery_layout::IndexPosition;
use super::engine::job::Progress;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::forms::{find, find_live, missing_version};
use super::{
    BATCH_ROWS, Context, SledStore, Step, Stop, delivery_layout, events, idempotency, layout, slugs, versions,
};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::revision::ExpectedRevision;
use crate::id::{FormId, WorkspaceId};
use crate::store::{IdempotencyKey, Restored, Result};

impl SledStore {
    /// Starts the purge of all forms trashed before `cutoff`. Returns how many.
    pub(super) async fn erase_trashed_forms(&self, cutoff: Timestamp) -> Result<usize> {
        let mut erased = 0;
        for (key, _) in self.reader.scan(layout::all(layout::WORKSPACES), Direction::Ascending, usize::MAX)? {
            let workspace = layout::listed_workspace(&key)?;
            let before = Some((cutoff, FormId::from_bytes([0; 8])));
            let due = layout::list(workspace, true, before);
            for (entry, _) in self.reader.scan(due, Direction::Ascending, usize::MAX)? {
                let form = layout::listed_form(&entry)?;
                let work = move |tx: &mut Tx<'_>| expire(tx, workspace, form, cutoff);
                if self.engine.write_as(WriteKind::Reclaim, work).await? {
                    self.resume_purge(workspace, form);
                    erased += 1;
                }
            }
        }
        Ok(erased)
    }

    /// Deletes the remaining rows of a purged form in the background.
    pub(super) fn resume_purge(&self, workspace: WorkspaceId, form: FormId) {
        self.engine.background(move |tx| {
            if erase_rows(tx, workspace, form)? == Progress::Done {
                tx.delete(layout::purge(form));
                return Ok(Progress::Done);
            }
            Ok(Progress::More)
        });
    }
}

/// Deletes a batch of the rows of a purged form whose number is not bounded.
pub(super) fn erase_rows(tx: &mut Tx<'_>, workspace: WorkspaceId, form: FormId) -> Result<Progress> {
    // No other operation changes rows of a purged form, so the index alone is complete.
    let deliveries = tx.stored_keys(delivery_layout::index_of_form(form), BATCH_ROWS / 2)?;
    if !deliveries.is_empty() {
        for entry in deliveries {
            let IndexPosition { event, target, .. } = IndexPosition::decode(&entry)?;
            tx.delete(delivery_layout::delivery(workspace, event, target));
            tx.delete(entry);
        }
        return Ok(Progress::More);
    }
    for range in layout::bulk_rows(form) {
        let keys = tx.stored_keys(range, BATCH_ROWS)?;
        if !keys.is_empty() {
            keys.into_iter().for_each(|key| tx.delete(key));
            return Ok(Progress::More);
        }
    }
    Ok(Progress::Done)
}

/// Moves a form at the expected revision to the trash.
pub(super) fn trash(
    tx: &mut Tx<'_>,
    context: &Context,
    workspace: WorkspaceId,
    form: FormId,
    expected: &ExpectedRevision,
    now: Timestamp,
) -> Step<()> {
    let live = find_live(tx, workspace, form)?.ok_or(Stop::Missing)?;
    expected.check(live.revision)?;
    slugs::release(tx, &live);
    tx.delete(layout::list_entry(&live));
    events::record(tx, context, &live, (EventType::FormDeleted, Subject::Form), None, now)?;
    let form = live.trashed(now);
    tx.put(layout::form(workspace, form.id), layout::to_json(&form)?);
    tx.put(layout::list_entry(&form), Vec::new());
    Ok(())
}

/// Restores a form from the trash.
pub(super) fn restore(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    idempotency_key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Step<Restored> {
    let form = find(tx, workspace, form)?.ok_or(Stop::Missing)?;
    idempotency::replay(tx, idempotency_key, now, |record| {
        let (form, responses) = layout::from_json("what was restored", &record.extra)?;
        restored_form(tx, form, responses, record.at)
    })?;
    let restored = form.restored()?;
    slugs::claim(tx, &restored)??;
    tx.put(layout::form(workspace, form.id), layout::to_json(&restored)?);
    tx.delete(layout::list_entry(&form));
    tx.put(layout::list_entry(&restored), Vec::new());
    let responses = Counters::of(tx, form.id)?.responses;
    let (made, given) =
        (idempotency::encode_id(form.id.to_bytes()), layout::to_json(&(&restored, responses))?);
    idempotency::insert_record(tx, idempotency_key, made, given, now);
    Ok(restored_form(tx, restored, responses, now)?)
}

/// Builds the result of a restore with the questions as they are in this transaction, so that the caller needs no
/// second read.
fn restored_form(tx: &Tx<'_>, form: Form, responses: u64, at: Timestamp) -> Result<Restored> {
    let Some(body) = tx.get(&layout::version(form.id, form.version))? else {
        return Err(missing_version(form.id, form.version));
    };
    Ok(Restored { form: Arc::new(form), version: versions::decode(&body)?, responses, at })
}

/// Starts the purge of a form if it was trashed before `cutoff`.
fn expire(tx: &mut Tx<'_>, workspace: WorkspaceId, form: FormId, cutoff: Timestamp) -> Result<bool> {
    let due = find(tx, workspace, form)?.filter(|form| form.is_due(cutoff));
    if let Some(form) = &due {
        remove_form(tx, form);
    }
    Ok(due.is_some())
}

/// Starts the purge of a form, in the trash or not.
pub(super) fn begin_purge(
    tx: &mut Tx<'_>,
    workspace: WorkspaceId,
    form: FormId,
    expected: &ExpectedRevision,
) -> Step<()> {
    let form = find(tx, workspace, form)?.ok_or(Stop::Missing)?;
    expected.check(form.revision)?;
    remove_form(tx, &form);
    Ok(())
}

/// Deletes the rows through which a form is found, and records that its other rows must be purged.
fn remove_form(tx: &mut Tx<'_>, form: &Form) {
    tx.delete(layout::form(form.workspace, form.id));
    tx.delete(layout::form_workspace(form.id));
    tx.delete(layout::counters(form.id));
    tx.delete(layout::retired(form.id));
    tx.delete(layout::list_entry(form));
    if form.deleted_at.is_none() {
        slugs::release(tx, form);
    }
    tx.put(layout::purge(form.id), form.workspace.to_bytes().to_vec());
}
