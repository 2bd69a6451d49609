//! Purges: a purged form is gone at once, and its other rows are erased in the background, by any server.

use super::counters::{self, Lock};
use super::transaction::Tx;
use super::{PostgresStore, forms, submissions};
use crate::clock::Timestamp;
use crate::id::{FormId, WorkspaceId};
use crate::store::Result;

/// Rows of a table that are erased at once.
const BATCH: i64 = 1_000;

/// Trashed forms that are read at once.
const TRASHED: i64 = 100;

/// The tables with rows of a form, other than those of its submissions, and their keys. Deliveries come before what is written
/// with them: once a delivery is gone, nothing is added to it.
const TABLES: [(&str, &str); 8] = [
    ("deliveries", "workspace, event, target"),
    ("attempts", "form, event, target, number"),
    ("events", "form, id"),
    ("confirmations", "form, mailbox"),
    ("confirmation_hours", "form"),
    ("queues", "form, integration"),
    ("form_versions", "form, number"),
    ("idempotency_records", "id"),
];

impl PostgresStore {
    /// Starts the purge of all forms trashed before `cutoff`. Returns how many.
    pub(super) async fn erase_trashed_forms(&self, cutoff: Timestamp) -> Result<usize> {
        let sql = "SELECT workspace, id FROM forms WHERE deleted_at IS NOT NULL AND deleted_at < $1 LIMIT $2";
        let mut erased = 0;
        loop {
            let due = self.query(sql, &[&cutoff, &TRASHED]).await?;
            if due.is_empty() {
                return Ok(erased);
            }
            for row in due {
                let form = row.get::<_, WorkspaceId>(0).form(row.get(1));
                let begin = |tx| async move {
                    let is_due = forms::lock(&tx, form).await?.is_some_and(|form| form.is_due(cutoff));
                    if is_due {
                        begin(&tx, form.id).await?;
                    }
                    Ok(is_due)
                };
                erased += usize::from(self.write(begin).await?);
            }
            self.resume_purges();
        }
    }

    /// Erases the remaining rows of purged forms, and the forms of deleted workspaces, in the background. To be called when the
    /// store is opened and once an hour, too, for those that another server has left.
    pub(super) fn resume_purges(&self) {
        let store = self.clone();
        self.context.tasks.spawn(async move {
            let _one_at_a_time = store.context.purging.lock().await;
            while store.write(|tx| async move { erase_batch(&tx).await }).await? {}
            Ok(())
        });
    }
}

/// Deletes the rows through which a locked form is found, and records that its other rows must be erased.
pub(super) async fn begin(tx: &Tx, form: FormId) -> Result<()> {
    tx.execute("INSERT INTO purges (form) VALUES ($1) ON CONFLICT (form) DO NOTHING", &[&form]).await?;
    delete(tx, form).await
}

/// Deletes a locked form and its locks: who waits for them finds that the form is gone.
async fn delete(tx: &Tx, form: FormId) -> Result<()> {
    tx.execute("DELETE FROM forms WHERE id = $1", &[&form]).await?;
    tx.execute("DELETE FROM counters WHERE form = $1", &[&form]).await.map(drop)
}

/// Erases a batch of the rows of a purged form. Returns `false` if there is none but those of which other servers erase rows.
async fn erase_batch(tx: &Tx) -> Result<bool> {
    let sql = "SELECT form FROM purges ORDER BY form LIMIT 1 FOR UPDATE SKIP LOCKED";
    let Some(row) = tx.query_opt(sql, &[]).await? else { return Ok(false) };
    let form: FormId = row.get(0);
    // Those of a deleted workspace are there until now.
    counters::lock(tx, form, Lock::Form).await?;
    delete(tx, form).await?;
    if erase_rows(tx, form).await? {
        tx.execute("DELETE FROM purges WHERE form = $1", &[&form]).await?;
    }
    Ok(true)
}

/// Erases a batch of the rows of a form that is gone. Returns whether they were the last ones.
async fn erase_rows(tx: &Tx, form: FormId) -> Result<bool> {
    for (table, key) in TABLES {
        let sql = format!(
            "DELETE FROM {table} WHERE form = $1 AND ({key}) IN (SELECT {key} FROM {table} WHERE form = $1 LIMIT $2)"
        );
        if tx.execute(&sql, &[&form, &BATCH]).await? == BATCH as u64 {
            return Ok(false);
        }
    }
    Ok(!submissions::erase_of_form(tx, form, BATCH).await?)
}
