//! Workspaces and API keys.

use std::sync::Arc;

use async_trait::async_trait;

use super::transaction::Tx;
use super::values::json;
use super::{PostgresStore, idempotency};
use crate::clock::Timestamp;
use crate::domain::form::admission::{IdempotencyRecord, Refusal};
use crate::domain::workspace::{ApiKey, Rotation, Workspace};
use crate::id::WorkspaceId;
use crate::secret::KeyId;
use crate::store::json::{from_json, to_text};
use crate::store::step::{Step, Stop};
use crate::store::{IdempotencyKey, Keys, NewKey, NewWorkspace, Result, StepResult};

#[async_trait]
impl Keys for PostgresStore {
    async fn bootstrap(&self, workspace: Workspace, key: ApiKey) -> Result<bool> {
        let mut signing_key = vec![0; 32];
        self.context.random.fill(&mut signing_key);
        let (signing_key, workspace, key) = (&signing_key, &workspace, &key);
        self.write(|tx| async move {
            // The row is the lock: of two servers that start at once, one waits here for the other.
            let sql =
                "INSERT INTO settings (name, value) VALUES ('signing_key', $1) ON CONFLICT (name) DO NOTHING";
            if tx.execute(sql, &[signing_key]).await? == 0 {
                return Ok(false);
            }
            put_workspace(&tx, workspace).await?;
            put(&tx, key).await?;
            Ok(true)
        })
        .await
    }

    async fn insert_workspace(&self, new: NewWorkspace) -> Result<StepResult<Workspace>> {
        let NewWorkspace { workspace, key, idempotency_key } = &new;
        self.step(|tx| async move {
            let now = workspace.created_at;
            let shown = async |record: IdempotencyRecord| from_json("a created workspace", &record.extra);
            idempotency::replay(&tx, idempotency_key.as_ref(), now, shown).await?;
            lock_workspaces(&tx).await?;
            let taken =
                "SELECT 1 FROM workspaces WHERE id = $1 UNION ALL SELECT 1 FROM api_keys WHERE id = $2";
            if !tx.query(taken, &[&workspace.id, &key.id]).await?.is_empty() {
                return Err(Stop::Recheck);
            }
            Workspace::check_count(list_workspaces(&tx).await?.len())?;
            put_workspace(&tx, workspace).await?;
            put(&tx, key).await?;
            let shown = to_text(workspace)?;
            idempotency::insert_record(&tx, idempotency_key.as_ref(), 0, shown.as_bytes(), now).await?;
            Ok(workspace.clone())
        })
        .await
    }

    async fn insert_key(&self, new: NewKey) -> Result<StepResult<ApiKey>> {
        let NewKey { key, idempotency_key } = &new;
        self.step(|tx| async move {
            let shown = async |record: IdempotencyRecord| from_json("a created key", &record.extra);
            idempotency::replay(&tx, idempotency_key.as_ref(), key.created_at, shown).await?;
            lock_workspace(&tx, key.workspace).await?.ok_or(Stop::Missing)?;
            check_new(&tx, key, 0).await?;
            add(&tx, key.clone(), idempotency_key.as_ref()).await
        })
        .await
    }

    async fn rotate_key(
        &self,
        workspace: WorkspaceId,
        key: KeyId,
        rotation: Rotation,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<ApiKey>> {
        let (rotation, idempotency_key) = (&rotation, idempotency_key.as_ref());
        self.step(|tx| async move {
            let shown = async |record: IdempotencyRecord| from_json("a rotated key", &record.extra);
            idempotency::replay(&tx, idempotency_key, now, shown).await?;
            lock_workspace(&tx, workspace).await?.ok_or(Stop::Missing)?;
            let old =
                find(&tx, workspace, key).await?.filter(|old| old.is_valid(now)).ok_or(Stop::Missing)?;
            let (new, remaining) = old.rotate(rotation, now);
            check_new(&tx, &new, usize::from(remaining.is_none())).await?;
            match remaining {
                Some(old) => put(&tx, &old).await?,
                None => delete(&tx, key).await?,
            }
            add(&tx, new, idempotency_key).await
        })
        .await
    }

    async fn delete_key(&self, workspace: WorkspaceId, key: KeyId, now: Timestamp) -> Result<StepResult<()>> {
        self.step(|tx| async move {
            lock_workspace(&tx, workspace).await?.ok_or(Stop::Missing)?;
            let found = find(&tx, workspace, key).await?.ok_or(Stop::Missing)?;
            let others = list(&tx, workspace).await?;
            let has_other = others.iter().any(|(other, _)| other.id != key && other.manages_keys(now));
            if found.manages_keys(now) && !has_other {
                return Err(Refusal::LastKey.into());
            }
            Ok(delete(&tx, key).await?)
        })
        .await
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Arc<ApiKey>>> {
        self.batchers.keys.ask(id).await
    }

    async fn list_keys(&self, workspace: WorkspaceId) -> Result<Vec<(Arc<ApiKey>, Option<Timestamp>)>> {
        self.read(|session| async move { list(&session, workspace).await }).await
    }

    async fn record_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        let (keys, times): (Vec<_>, Vec<_>) = uses.into_iter().unzip();
        let sql = "UPDATE api_keys SET last_used_at = greatest(last_used_at, used.at)
                   FROM (SELECT unnest($1::TEXT[]) AS id, unnest($2::BIGINT[]) AS at) used WHERE api_keys.id = used.id";
        self.execute(sql, &[&keys, &times]).await.map(drop)
    }

    async fn list_workspaces(&self) -> Result<Vec<Workspace>> {
        self.read(|session| async move { list_workspaces(&session).await }).await
    }

    async fn find_workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        self.read(|session| async move { find_workspace(&session, id).await }).await
    }

    async fn delete_workspace(&self, id: WorkspaceId, own: WorkspaceId) -> Result<StepResult<()>> {
        let deleted = self
            .step(|tx| async move {
                lock_workspaces(&tx).await?;
                let own = find_workspace(&tx, own).await?;
                lock_workspace(&tx, id).await?.ok_or(Stop::Missing)?.check_deletion(own.as_ref())?;
                tx.execute("UPDATE workspaces SET is_deleted = true WHERE id = $1", &[&id]).await?;
                tx.execute("DELETE FROM api_keys WHERE workspace = $1", &[&id]).await?;
                // Its forms are unreachable from then on, because every request needs a key of their workspace.
                let purge = "INSERT INTO purges (form) SELECT id FROM forms WHERE workspace = $1
                             ON CONFLICT (form) DO NOTHING";
                tx.execute(purge, &[&id]).await?;
                Ok(())
            })
            .await?;
        if matches!(deleted, StepResult::Done(())) {
            self.resume_purges();
        }
        Ok(deleted)
    }
}

/// Locks the number of workspaces.
async fn lock_workspaces(tx: &Tx) -> Result<()> {
    tx.query("SELECT 1 FROM settings WHERE name = 'signing_key' FOR UPDATE", &[]).await.map(drop)
}

/// Locks a workspace and the number of its keys.
pub(super) async fn lock_workspace(tx: &Tx, id: WorkspaceId) -> Result<Option<Workspace>> {
    let sql = "SELECT data FROM workspaces WHERE id = $1 AND NOT is_deleted FOR UPDATE";
    tx.find_json("a workspace", sql, &[&id]).await
}

async fn find_workspace(session: &Tx, id: WorkspaceId) -> Result<Option<Workspace>> {
    let sql = "SELECT data FROM workspaces WHERE id = $1 AND NOT is_deleted";
    session.find_json("a workspace", sql, &[&id]).await
}

async fn list_workspaces(session: &Tx) -> Result<Vec<Workspace>> {
    let sql = "SELECT data FROM workspaces WHERE NOT is_deleted ORDER BY id";
    session.list_json("a workspace", sql, &[]).await
}

async fn put_workspace(tx: &Tx, workspace: &Workspace) -> Result<()> {
    let sql = "INSERT INTO workspaces (id, data) VALUES ($1, $2)";
    tx.execute(sql, &[&workspace.id, &to_text(workspace)?]).await.map(drop)
}

/// Writes a new or changed key.
pub(super) async fn put(tx: &Tx, key: &ApiKey) -> Result<()> {
    let sql = "INSERT INTO api_keys (id, workspace, created_at, data) VALUES ($1, $2, $3, $4)
               ON CONFLICT (id) DO UPDATE SET data = excluded.data";
    tx.execute(sql, &[&key.id, &key.workspace, &key.created_at, &to_text(key)?]).await.map(drop)
}

pub(super) async fn delete(tx: &Tx, key: KeyId) -> Result<()> {
    tx.execute("DELETE FROM api_keys WHERE id = $1", &[&key]).await.map(drop)
}

async fn find(tx: &Tx, workspace: WorkspaceId, id: KeyId) -> Result<Option<ApiKey>> {
    let sql = "SELECT data FROM api_keys WHERE id = $1 AND workspace = $2";
    tx.find_json("an API key", sql, &[&id, &workspace]).await
}

async fn list(session: &Tx, workspace: WorkspaceId) -> Result<Vec<(Arc<ApiKey>, Option<Timestamp>)>> {
    let sql =
        "SELECT data, last_used_at FROM api_keys WHERE workspace = $1 ORDER BY created_at DESC, id DESC";
    let rows = session.query(sql, &[&workspace]).await?;
    rows.iter().map(|row| Ok((Arc::new(json("an API key", row, 0)?), row.get(1)))).collect()
}

/// Checks that a key can be added in place of `removed` others.
async fn check_new(tx: &Tx, key: &ApiKey, removed: usize) -> Result<(), Stop<ApiKey>> {
    if tx.query_opt("SELECT 1 FROM api_keys WHERE id = $1", &[&key.id]).await?.is_some() {
        return Err(Stop::Recheck);
    }
    let keys = list(tx, key.workspace).await?;
    Ok(Workspace::check_key_count(keys.len() - removed)?)
}

/// Adds a key and its idempotency record.
async fn add(tx: &Tx, key: ApiKey, idempotency_key: Option<&IdempotencyKey>) -> Step<ApiKey> {
    put(tx, &key).await?;
    let shown = to_text(&key.without_hash())?;
    idempotency::insert_record(tx, idempotency_key, 0, shown.as_bytes(), key.created_at).await?;
    Ok(key)
}
