//! Purging forms.

use super::delivery_layout::IndexPosition;
use super::engine::job::Progress;
use super::engine::operation::WriteKind;
use super::engine::tx::Tx;
use super::forms::find;
use super::row_source::{self, RowSource};
use super::{BATCH_ROWS, SledStore, delivery_layout, layout, slugs};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::id::{FormId, FormRef, WorkspaceId};
use crate::store::Result;

impl SledStore {
    /// Starts the purge of all forms trashed before `cutoff`. Returns how many.
    pub(super) async fn erase_trashed_forms(&self, cutoff: Timestamp) -> Result<usize> {
        let mut erased = 0;
        for (key, _) in self.reader.scan_all(layout::all(layout::WORKSPACES))? {
            let workspace = layout::last(&key, WorkspaceId::from_bytes)?;
            let due = layout::list(workspace, true, Some((cutoff, FormId::ZERO)));
            for (entry, _) in self.reader.scan_all(due)? {
                let form = workspace.form(layout::last(&entry, FormId::from_bytes)?);
                let work = move |tx: &mut Tx<'_>| {
                    let due = find(tx, form)?.filter(|form| form.is_due(cutoff));
                    due.as_ref().map_or(Ok(()), |form| remove_form(tx, form))?;
                    Ok(due.is_some())
                };
                if self.engine.write_as(WriteKind::Reclaim, work).await? {
                    self.resume_purge(form);
                    erased += 1;
                }
            }
        }
        Ok(erased)
    }

    /// Deletes the remaining rows of a purged form in the background.
    pub(super) fn resume_purge(&self, form: FormRef) {
        self.engine.background(move |tx| {
            let progress = erase_rows(tx, form)?;
            if progress == Progress::Done {
                tx.delete(layout::purge(form.id));
            }
            Ok(progress)
        });
    }
}

/// Deletes a batch of the rows of a purged form whose number is not bounded.
pub(super) fn erase_rows(tx: &mut Tx<'_>, form: FormRef) -> Result<Progress> {
    // No other operation changes rows of a purged form, so the index alone is complete.
    let deliveries = tx.stored_keys(delivery_layout::index_of_form(form.id), BATCH_ROWS / 2)?;
    if !deliveries.is_empty() {
        for entry in deliveries {
            let IndexPosition { event, target, .. } = IndexPosition::decode(&entry)?;
            tx.delete(delivery_layout::delivery(form.workspace, event, target));
            tx.delete(entry);
        }
        return Ok(Progress::More);
    }
    for range in layout::bulk_rows(form.id) {
        if row_source::erase(tx, range)? == Progress::More {
            return Ok(Progress::More);
        }
    }
    Ok(Progress::Done)
}

/// Deletes the rows through which a form is found, and records that its other rows must be purged.
pub(super) fn remove_form(tx: &mut Tx<'_>, form: &Form) -> Result<()> {
    tx.delete(layout::form(form.reference()));
    tx.delete(layout::form_workspace(form.id));
    tx.delete(layout::counters(form.id));
    tx.delete(layout::retired(form.id));
    tx.delete(layout::list_entry(form));
    if form.deleted_at.is_none() {
        slugs::release(tx, form);
    }
    tx.put(layout::purge(form.id), form.workspace.to_bytes().to_vec());
    tx.count_erasure()
}
