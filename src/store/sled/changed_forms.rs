//! Forms with news for their queues, handed from the writes that made them to the one task that carries out deliveries.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::id::{FormId, WorkspaceId};

#[derive(Default)]
pub(super) struct ChangedForms {
    forms: Mutex<HashSet<(WorkspaceId, FormId)>>,
    changed: Notify,
}

impl ChangedForms {
    pub(super) fn record(&self, workspace: WorkspaceId, form: FormId) {
        let is_new = self.forms.lock().unwrap_or_else(PoisonError::into_inner).insert((workspace, form));
        if is_new {
            self.changed.notify_one();
        }
    }

    /// Waits until there are any, and takes them.
    pub(super) async fn take(&self) -> Vec<(WorkspaceId, FormId)> {
        loop {
            let forms = std::mem::take(&mut *self.forms.lock().unwrap_or_else(PoisonError::into_inner));
            if !forms.is_empty() {
                return forms.into_iter().collect();
            }
            self.changed.notified().await;
        }
    }
}
