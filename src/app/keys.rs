//! Authentication of API keys, and creation of the operator key.

use super::{App, AppError};
use crate::clock::Timestamp;
use crate::domain::workspace::{ApiKey, Caller, Scope, Workspace};
use crate::id::{Random, WorkspaceId};
use crate::secret::KeyText;
use crate::store::{Store, StoreError};

impl App {
    /// Authenticates the API key `text`. The checksum is verified before the store is queried.
    pub async fn authenticate(&self, text: &str) -> Result<Caller, AppError> {
        let sent: KeyText = text.parse().map_err(|_unfit| AppError::Unauthenticated)?;
        let known = self.store.find_key(sent.id()).await?;
        let valid = known.filter(|key| sent.matches(&key.hash));
        let valid = valid.filter(|key| key.expires_at.is_none_or(|end| self.now() < end));
        valid.map(Caller::authenticated).ok_or(AppError::Unauthenticated)
    }

    /// Returns the caller's workspace.
    pub async fn get_workspace(&self, caller: &Caller) -> Result<Workspace, AppError> {
        self.store.find_workspace(caller.workspace).await?.ok_or(AppError::Unauthenticated)
    }
}

/// Creates the workspace `default` with the operator key `key`. Returns false, and changes nothing, if the store already has
/// a workspace.
pub async fn bootstrap(
    store: &dyn Store,
    key: &KeyText,
    random: &dyn Random,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let workspace = Workspace { id: WorkspaceId::draw(random), name: "default".to_owned(), created_at: now };
    let key = operator_key(workspace.id, key, now);
    store.bootstrap(workspace, key).await
}

/// Adds `key` as another operator key of the oldest workspace, if there is one.
pub async fn add_operator_key(store: &dyn Store, key: &KeyText, now: Timestamp) -> Result<(), StoreError> {
    let workspaces = store.list_workspaces().await?;
    match workspaces.iter().min_by_key(|workspace| workspace.created_at) {
        Some(oldest) => store.insert_key(operator_key(oldest.id, key, now)).await,
        None => Ok(()),
    }
}

fn operator_key(workspace: WorkspaceId, key: &KeyText, now: Timestamp) -> ApiKey {
    ApiKey {
        id: key.id(),
        workspace,
        name: "operator".to_owned(),
        hash: key.hash(),
        scopes: vec![Scope::Admin, Scope::Operator],
        created_at: now,
        expires_at: None,
    }
}
