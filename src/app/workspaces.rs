//! Creating, listing and deleting workspaces.

use super::{ApiError, IdempotentRequest, Result, Session, into_result};
use crate::api::{Code, WorkspaceDetail, WorkspaceList};
use crate::domain::form::admission::Refusal;
use crate::domain::workspace::{ApiKey, Scope, Workspace};
use crate::id::WorkspaceId;
use crate::secret::KeyText;
use crate::store::{IdempotentOperation, NewWorkspace};

impl Session {
    /// Creates a workspace with its first key, which has the scope `admin`. The text of the key is shown once: not when the
    /// creation is replayed.
    pub async fn create_workspace(&self, request: IdempotentRequest<'_>) -> Result<WorkspaceDetail> {
        self.require_unlimited_scope(Scope::Operator)?;
        let body = self.parse(request.body).await?;
        let name = Workspace::read_name(&body).map_err(Refusal::InvalidBody)?;
        let (id, created_at, text) =
            (WorkspaceId::draw(&*self.random), self.now(), KeyText::draw(&*self.random));
        let key = ApiKey::admin(id, text.id(), text.hash(), created_at);
        let idempotency_key = request.idempotency_key(&self.caller, IdempotentOperation::CreateWorkspace);
        let new = NewWorkspace { workspace: Workspace { id, name, created_at }, key, idempotency_key };
        let step = self.store.insert_workspace(new).await?;
        let (workspace, replayed) = into_result(step, Code::WorkspaceNotFound, &id.to_string())?;
        Ok(WorkspaceDetail::new(workspace, (!replayed).then_some(&text)))
    }

    /// Lists all workspaces, newest first.
    pub async fn list_workspaces(&self) -> Result<WorkspaceList> {
        self.require_unlimited_scope(Scope::Operator)?;
        let mut workspaces = self.store.list_workspaces().await?;
        workspaces.sort_by_key(|workspace| std::cmp::Reverse((workspace.created_at, workspace.id)));
        let workspaces = workspaces.into_iter().map(|workspace| WorkspaceDetail::new(workspace, None));
        Ok(WorkspaceList { workspaces: workspaces.collect() })
    }

    /// Deletes a workspace other than the caller's: its keys end at once, and its forms are purged.
    pub async fn delete_workspace(&self, id: &str) -> Result<()> {
        self.require_unlimited_scope(Scope::Operator)?;
        let workspace = id.parse().map_err(|_invalid| ApiError::not_found(Code::WorkspaceNotFound, id))?;
        let step = self.store.delete_workspace(workspace, self.caller.workspace).await?;
        into_result(step, Code::WorkspaceNotFound, id).map(drop)
    }
}
