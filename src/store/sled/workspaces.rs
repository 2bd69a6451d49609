//! Purging workspaces.

use super::engine::job::Progress;
use super::engine::tx::Tx;
use super::row_source::{self, RowSource};
use super::{BATCH_ROWS, SledStore, form_trash, layout};
use crate::id::{FormId, WorkspaceId};
use crate::store::Result;

/// Forms of a deleted workspace that are erased per transaction, unless they have more rows.
const PURGED_FORMS: usize = BATCH_ROWS / 4;

impl SledStore {
    /// Deletes the remaining rows of a deleted workspace in the background.
    pub(super) fn resume_workspace_purge(&self, workspace: WorkspaceId) {
        self.engine.background(move |tx| purge(tx, workspace));
    }
}

/// Deletes a batch of rows of a deleted workspace. The remaining list entries and slugs are the record of progress; the
/// row that marks the workspace as deleted stays, so that a request received before cannot add a form.
fn purge(tx: &mut Tx<'_>, workspace: WorkspaceId) -> Result<Progress> {
    for is_trashed in [false, true] {
        let forms = tx.first_keys(layout::list(workspace, is_trashed, None), PURGED_FORMS)?;
        if !forms.is_empty() {
            purge_forms(tx, workspace, forms)?;
            return Ok(Progress::More);
        }
    }
    row_source::erase(tx, layout::slugs(workspace))
}

/// Deletes a batch of rows of the forms with these list entries. The forms themselves come first: once they are gone, requests
/// received before the deletion add no more rows.
fn purge_forms(tx: &mut Tx<'_>, workspace: WorkspaceId, entries: Vec<Vec<u8>>) -> Result<()> {
    let mut found = Vec::new();
    for entry in &entries {
        let form = layout::form(workspace.form(layout::last(entry, FormId::from_bytes)?));
        if tx.get(&form)?.is_some() {
            found.push(form);
        }
    }
    if !found.is_empty() {
        found.into_iter().for_each(|form| tx.delete(form));
        return tx.count_erasure();
    }
    for entry in entries {
        let form = layout::last(&entry, FormId::from_bytes)?;
        if form_trash::erase_rows(tx, workspace.form(form))? == Progress::More {
            break;
        }
        tx.delete(layout::form_workspace(form));
        tx.delete(layout::counters(form));
        tx.delete(layout::retired(form));
        tx.delete(entry);
    }
    Ok(())
}
