//! API keys: authentication, and creating, listing, revoking and rotating them.

use super::{ApiError, App, IdempotentRequest, Result, Session, into_result};
use crate::api::{Code, KeyDetail, KeyList, KeyView, Whoami, WorkspaceView};
use crate::clock::Timestamp;
use crate::domain::form::admission::Refusal;
use crate::domain::json::Value;
use crate::domain::open_enum::OpenEnum;
use crate::domain::workspace::{
    ApiKey, Caller, KeyReferences, Rotation, Scope, Workspace, named_forms, named_workspace, needed_scopes,
    read_grace,
};
use crate::id::{Random, WorkspaceId};
use crate::secret::{KeyId, KeyText};
use crate::store::{IdempotentOperation, NewKey, Store, StoreError};

impl App {
    /// Authenticates the API key `text`. The checksum is verified before the store is queried.
    pub async fn authenticate(&self, text: &str) -> Result<Caller> {
        let sent: KeyText = text.parse().map_err(|_unfit| ApiError::new(Code::Unauthorized))?;
        let (known, now) = (self.store.find_key(sent.id()).await?, self.now());
        let valid = known.filter(|key| sent.matches(&key.hash) && key.is_valid(now));
        let key = valid.ok_or_else(|| ApiError::new(Code::Unauthorized))?;
        self.key_uses.record(key.id, now);
        Ok(key)
    }

    /// Stores when keys were last used, if any was since the last call. A use that cannot be stored is kept for the next
    /// call.
    pub async fn store_key_uses(&self) -> Result<(), StoreError> {
        let uses = self.key_uses.snapshot();
        if uses.is_empty() {
            return Ok(());
        }
        self.store.record_key_uses(uses.clone().into_iter().collect()).await?;
        self.key_uses.remove(&uses);
        Ok(())
    }
}

impl Session {
    /// Returns the caller's workspace and key.
    pub async fn whoami(&self) -> Result<Whoami> {
        let found = self.store.find_workspace(self.caller.workspace).await?;
        let Workspace { id, name, .. } = found.ok_or_else(|| ApiError::new(Code::Unauthorized))?;
        let workspace = WorkspaceView { id, name };
        let scopes = self.caller.scopes.iter().copied().map(OpenEnum::from).collect();
        let (name, forms) = (self.caller.name.clone(), self.caller.forms.clone());
        let key = KeyView { id: self.caller.id, name, scopes, forms, expires_at: self.caller.end() };
        Ok(Whoami { workspace, key })
    }

    /// Creates a key of the caller's workspace, or of the one that the body names: an operator may do that, with any scopes.
    /// The text of the key is shown once: not when the creation is replayed.
    pub async fn create_key(&self, request: IdempotentRequest<'_>) -> Result<KeyDetail> {
        let is_operator = self.caller.has_scope(Scope::Operator);
        self.require_unlimited_scope(if is_operator { Scope::Operator } else { Scope::Admin })?;
        let body = self.parse(request.body).await?;
        for scope in needed_scopes(&body) {
            self.require_scope(scope)?;
        }
        let idempotency_key = request.idempotency_key(&self.caller, IdempotentOperation::CreateKey);
        // Before all validation: what the body names may be gone since.
        if let Some(record) = self.find_record(idempotency_key.as_ref()).await? {
            let undecodable = |error| StoreError::Undecodable(format!("a created key: {error}"));
            let key = serde_json::from_slice(&record.extra).map_err(undecodable)?;
            return Ok(KeyDetail::new(&key, None, None));
        }
        let (references, now) = (self.find_references(&body).await?, self.now());
        let text = KeyText::draw(&*self.random);
        let key = ApiKey::read(&body, &references, &text, now).map_err(Refusal::InvalidBody)?;
        let workspace = key.workspace;
        let step = self.store.insert_key(NewKey { key, idempotency_key }).await?;
        let (key, replayed) = into_result(step, Code::WorkspaceNotFound, &workspace.to_string())?;
        Ok(KeyDetail::new(&key, None, (!replayed).then_some(&text)))
    }

    /// Finds the workspace and the forms that the request for a key names.
    async fn find_references(&self, body: &Value) -> Result<KeyReferences> {
        let workspace = match named_workspace(body) {
            None => Some(self.caller.workspace),
            Some(named) => self.find_named_workspace(named.as_str().unwrap_or_default()).await?,
        };
        let mut references = KeyReferences { workspace, ..KeyReferences::default() };
        let Some(workspace) = workspace else { return Ok(references) };
        for name in named_forms(body) {
            let Some(form) = self.find_form_id(workspace, name).await? else { continue };
            if self.store.find_form(workspace.form(form)).await?.is_some() {
                references.forms.insert(name.to_owned(), form);
            }
        }
        Ok(references)
    }

    async fn find_named_workspace(&self, id: &str) -> Result<Option<WorkspaceId>> {
        let Ok(id) = id.parse() else { return Ok(None) };
        Ok(self.store.find_workspace(id).await?.map(|found| found.id))
    }

    /// Returns the workspace whose keys a request manages: the caller's, or the one that an operator names.
    async fn managed_workspace(&self, named: Option<&str>) -> Result<WorkspaceId> {
        let Some(named) = named else {
            self.require_unlimited_scope(Scope::Admin)?;
            return Ok(self.caller.workspace);
        };
        self.require_unlimited_scope(Scope::Operator)?;
        let found = self.find_named_workspace(named).await?;
        found.ok_or_else(|| ApiError::not_found(Code::WorkspaceNotFound, named))
    }

    /// Lists the keys of the caller's workspace, or of the one that an operator names, newest first, each with the minute of
    /// its last use.
    pub async fn list_keys(&self, workspace: Option<&str>) -> Result<KeyList> {
        let workspace = self.managed_workspace(workspace).await?;
        // Before the store is read: what is written in between is then in both.
        let unwritten = self.key_uses.snapshot();
        let keys = self.store.list_keys(workspace).await?.into_iter().map(|(key, last_used_at)| {
            KeyDetail::new(&key, unwritten.get(&key.id).copied().or(last_used_at), None)
        });
        Ok(KeyList { keys: keys.collect() })
    }

    /// Revokes a key of the caller's workspace, or of the one that an operator names, from the next request on. The last one
    /// that manages keys is refused.
    pub async fn revoke_key(&self, id: &str, workspace: Option<&str>) -> Result<()> {
        let workspace = self.managed_workspace(workspace).await?;
        let key = key_id(id)?;
        self.require_scopes_of(key).await?;
        let step = self.store.delete_key(workspace, key, self.now()).await?;
        into_result(step, Code::KeyNotFound, id).map(drop)
    }

    /// Replaces a key of the caller's workspace by one with the same name, scopes, limits and expiry.
    pub async fn rotate_key(&self, id: &str, request: IdempotentRequest<'_>) -> Result<KeyDetail> {
        self.require_unlimited_scope(Scope::Admin)?;
        let key = key_id(id)?;
        let grace_millis = match request.body {
            "" => 0,
            body => read_grace(&self.parse(body).await?, 0).map_err(Refusal::InvalidBody)?,
        };
        self.require_scopes_of(key).await?;
        let idempotency_key = request.idempotency_key(&self.caller, IdempotentOperation::RotateKey(key));
        let text = KeyText::draw(&*self.random);
        let rotation = Rotation { id: text.id(), hash: text.hash(), grace_millis };
        let step =
            self.store.rotate_key(self.caller.workspace, key, rotation, idempotency_key, self.now()).await?;
        let (key, replayed) = into_result(step, Code::KeyNotFound, id)?;
        Ok(KeyDetail::new(&key, None, (!replayed).then_some(&text)))
    }

    /// Requires `operator` if the key has that scope. Otherwise an admin could rotate an operator's key, and get its
    /// permissions, or revoke it.
    async fn require_scopes_of(&self, key: KeyId) -> Result<()> {
        let found = self.store.find_key(key).await?.filter(|key| key.workspace == self.caller.workspace);
        match found.is_some_and(|key| key.scopes.contains(&Scope::Operator)) {
            true => self.require_scope(Scope::Operator),
            false => Ok(()),
        }
    }
}

fn key_id(id: &str) -> Result<KeyId> {
    id.parse().map_err(|_invalid| ApiError::not_found(Code::KeyNotFound, id))
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
    let key = ApiKey::operator(workspace.id, key.id(), key.hash(), now);
    store.bootstrap(workspace, key).await
}

/// Returns the workspace of operator keys that the server itself creates.
pub async fn oldest_workspace(store: &dyn Store) -> Result<Option<WorkspaceId>, StoreError> {
    let workspaces = store.list_workspaces().await?;
    let oldest = workspaces.iter().min_by_key(|workspace| (workspace.created_at, workspace.id));
    Ok(oldest.map(|workspace| workspace.id))
}
