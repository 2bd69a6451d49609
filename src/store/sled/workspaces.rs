//! Purging workspaces.

use super::engine::job::Progress;
use super::engine::tx::{Direction, Tx};
use super::{BATCH_ROWS, SledStore, form_trash, layout};
use crate::id::WorkspaceId;
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
        let forms = tx.scan(layout::list(workspace, is_trashed, None), Direction::Ascending, PURGED_FORMS)?;
        if !forms.is_empty() {
            purge_forms(tx, workspace, forms.into_iter().map(|(entry, _)| entry).collect())?;
            return Ok(Progress::More);
        }
    }
    // No other operation changes rows of a deleted workspace, so the index alone is complete.
    let slugs = tx.stored_keys(layout::slugs(workspace), BATCH_ROWS)?;
    let progress = if slugs.is_empty() { Progress::Done } else { Progress::More };
    slugs.into_iter().for_each(|slug| tx.delete(slug));
    Ok(progress)
}

/// Deletes a batch of rows of the forms with these list entries. The forms themselves come first: once they are gone, requests
/// received before the deletion add no more rows.
fn purge_forms(tx: &mut Tx<'_>, workspace: WorkspaceId, entries: Vec<Vec<u8>>) -> Result<()> {
    let mut found = Vec::new();
    for entry in &entries {
        let form = layout::form(workspace, layout::listed_form(entry)?);
        if tx.get(&form)?.is_some() {
            found.push(form);
        }
    }
    if !found.is_empty() {
        found.into_iter().for_each(|form| tx.delete(form));
        return Ok(());
    }
    for entry in entries {
        let form = layout::listed_form(&entry)?;
        if form_trash::erase_rows(tx, workspace, form)? == Progress::More {
            break;
        }
        tx.delete(layout::form_workspace(form));
        tx.delete(layout::counters(form));
        tx.delete(layout::retired(form));
        tx.delete(entry);
    }
    Ok(())
}
