//! Workspaces and API keys in the embedded store.

use std::sync::Arc;

use async_trait::async_trait;

use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, Tx};
use super::row_source::RowSource;
use super::{Context, SledStore, Step, Stop, decoded_cache, idempotency, layout};
use crate::clock::Timestamp;
use crate::domain::form::admission::{IdempotencyRecord, Refusal};
use crate::domain::workspace::{ApiKey, Rotation, Workspace};
use crate::id::WorkspaceId;
use crate::secret::KeyId;
use crate::store::{IdempotencyKey, Keys, NewKey, NewWorkspace, Result, StepResult};

#[async_trait]
impl Keys for SledStore {
    async fn bootstrap(&self, workspace: Workspace, key: ApiKey) -> Result<bool> {
        let context = Arc::clone(&self.context);
        self.engine
            .write(move |tx| {
                if tx.has_any(layout::all(layout::WORKSPACES))? {
                    return Ok(false);
                }
                let mut signing_key = [0; 32];
                context.random.fill(&mut signing_key);
                tx.put(layout::SIGNING_KEY.to_vec(), signing_key.to_vec());
                tx.put(layout::workspace(workspace.id), layout::to_json(&workspace)?);
                put(tx, &key)?;
                Ok(true)
            })
            .await
    }

    async fn insert_workspace(&self, new: NewWorkspace) -> Result<StepResult<Workspace>> {
        let NewWorkspace { workspace, key, idempotency_key } = new;
        self.step(WriteKind::Normal, move |tx, _| {
            let (id, now) = (workspace.id, workspace.created_at);
            let shown = |record: IdempotencyRecord| layout::from_json("a created workspace", &record.extra);
            idempotency::replay(tx, idempotency_key.as_ref(), now, shown)?;
            for row in [layout::workspace(id), layout::deleted_workspace(id), layout::api_key(key.id)] {
                if tx.get(&row)?.is_some() {
                    return Err(Stop::Recheck);
                }
            }
            let workspaces = tx.scan_all(layout::all(layout::WORKSPACES))?;
            Workspace::check_count(workspaces.len())?;
            let shown = layout::to_json(&workspace)?;
            tx.put(layout::workspace(id), shown.clone());
            put(tx, &key)?;
            idempotency::insert_record(tx, idempotency_key.as_ref(), 0, shown, now);
            Ok(workspace)
        })
        .await
    }

    async fn insert_key(&self, new: NewKey) -> Result<StepResult<ApiKey>> {
        let NewKey { key, idempotency_key } = new;
        self.step(WriteKind::Normal, move |tx, _| {
            let shown = |record: IdempotencyRecord| layout::from_json("a created key", &record.extra);
            idempotency::replay(tx, idempotency_key.as_ref(), key.created_at, shown)?;
            if tx.get(&layout::workspace(key.workspace))?.is_none() {
                return Err(Stop::Missing);
            }
            check_new(tx, &key, 0)?;
            add(tx, key, idempotency_key.as_ref())
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
        self.step(WriteKind::Normal, move |tx, _| {
            let shown = |record: IdempotencyRecord| layout::from_json("a rotated key", &record.extra);
            idempotency::replay(tx, idempotency_key.as_ref(), now, shown)?;
            let old = find(tx, workspace, key)?.filter(|old| old.is_valid(now)).ok_or(Stop::Missing)?;
            let entry = layout::key_entry(&old);
            let (new, remaining) = old.rotate(&rotation, now);
            check_new(tx, &new, usize::from(remaining.is_none()))?;
            match remaining {
                Some(old) => put(tx, &old)?,
                None => delete(tx, key, entry),
            }
            add(tx, new, idempotency_key.as_ref())
        })
        .await
    }

    async fn delete_key(&self, workspace: WorkspaceId, key: KeyId, now: Timestamp) -> Result<StepResult<()>> {
        self.step(WriteKind::Reclaim, move |tx, _| {
            let key = find(tx, workspace, key)?.ok_or(Stop::Missing)?;
            if key.manages_keys(now) && !has_other_manager(tx, &key, now)? {
                return Err(Refusal::LastKey.into());
            }
            delete(tx, key.id, layout::key_entry(&key));
            Ok(())
        })
        .await
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Arc<ApiKey>>> {
        self.key(id)
    }

    async fn list_keys(&self, workspace: WorkspaceId) -> Result<Vec<(Arc<ApiKey>, Option<Timestamp>)>> {
        self.scan_on_pool(usize::MAX, move |store| {
            let mut keys = Vec::new();
            let entries = layout::key_entries(workspace);
            for (entry, _) in store.reader.scan(entries, Direction::Descending, usize::MAX)? {
                let id = layout::listed_key(&entry)?;
                // It may have been revoked since the scan.
                let found = store.key(id)?;
                let last_use = store.reader.read(&layout::key_use(id), layout::decode_time)?;
                keys.extend(found.map(|key| (key, last_use)));
            }
            Ok(keys)
        })
        .await
    }

    async fn record_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        let work = move |tx: &mut Tx<'_>| {
            for (key, at) in uses {
                if tx.get(&layout::api_key(key))?.is_some() {
                    tx.put(layout::key_use(key), layout::encode_time(at));
                }
            }
            Ok(())
        };
        self.engine.write(work).await
    }

    async fn list_workspaces(&self) -> Result<Vec<Workspace>> {
        let rows = self.reader.scan_all(layout::all(layout::WORKSPACES))?;
        rows.iter().map(|(_, body)| layout::decode_workspace(body)).collect()
    }

    async fn find_workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        find_workspace(&self.reader, id)
    }

    async fn delete_workspace(&self, id: WorkspaceId, own: WorkspaceId) -> Result<StepResult<()>> {
        // Its forms are unreachable from then on, because every request needs a key of their workspace.
        let work = move |tx: &mut Tx<'_>, _: &Context| {
            let own = find_workspace(tx, own)?;
            find_workspace(tx, id)?.ok_or(Stop::Missing)?.check_deletion(own.as_ref())?;
            tx.delete(layout::workspace(id));
            for (entry, _) in tx.scan_all(layout::key_entries(id))? {
                delete(tx, layout::listed_key(&entry)?, entry);
            }
            tx.put(layout::deleted_workspace(id), Vec::new());
            Ok(())
        };
        let begun = self.step(WriteKind::Reclaim, work).await?;
        if matches!(begun, StepResult::Done(())) {
            self.resume_workspace_purge(id);
        }
        Ok(begun)
    }
}

impl SledStore {
    fn key(&self, id: KeyId) -> Result<Option<Arc<ApiKey>>> {
        decoded_cache::read(&self.context.keys, &self.reader, &layout::api_key(id), layout::decode_api_key)
    }

    /// Adds the list entries that the keys of a store of an earlier version lack.
    pub async fn add_key_entries(&self) -> Result<()> {
        let mut missing = Vec::new();
        for (_, body) in self.reader.scan_all(layout::all(layout::API_KEYS))? {
            let entry = layout::key_entry(&layout::decode_api_key(&body)?);
            if self.reader.get(&entry)?.is_none() {
                missing.push(entry);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let work = move |tx: &mut Tx<'_>| {
            missing.into_iter().for_each(|entry| tx.put(entry, Vec::new()));
            Ok(())
        };
        self.engine.write_as(WriteKind::Reclaim, work).await
    }
}

fn find_workspace(rows: &impl RowSource, id: WorkspaceId) -> Result<Option<Workspace>> {
    rows.read(&layout::workspace(id), layout::decode_workspace)
}

/// Writes a new or changed key.
pub(super) fn put(tx: &mut Tx<'_>, key: &ApiKey) -> Result<()> {
    tx.put(layout::api_key(key.id), layout::to_json(key)?);
    tx.put(layout::key_entry(key), Vec::new());
    Ok(())
}

/// Deletes all rows of the key with this list entry.
pub(super) fn delete(tx: &mut Tx<'_>, key: KeyId, entry: Vec<u8>) {
    tx.delete(layout::api_key(key));
    tx.delete(layout::key_use(key));
    tx.delete(entry);
}

fn find(tx: &Tx<'_>, workspace: WorkspaceId, key: KeyId) -> Result<Option<ApiKey>> {
    let key = tx.read(&layout::api_key(key), layout::decode_api_key)?;
    Ok(key.filter(|key| key.workspace == workspace))
}

/// Whether the workspace of `key` has another one that manages keys.
fn has_other_manager(tx: &Tx<'_>, key: &ApiKey, now: Timestamp) -> Result<bool> {
    for (entry, _) in tx.scan_all(layout::key_entries(key.workspace))? {
        let id = layout::listed_key(&entry)?;
        if id != key.id && find(tx, key.workspace, id)?.is_some_and(|other| other.manages_keys(now)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that a key can be added in place of `removed` others.
fn check_new(tx: &Tx<'_>, key: &ApiKey, removed: usize) -> Result<(), Stop<ApiKey>> {
    if tx.get(&layout::api_key(key.id))?.is_some() {
        return Err(Stop::Recheck);
    }
    let keys = tx.scan_all(layout::key_entries(key.workspace))?;
    Ok(Workspace::check_key_count(keys.len() - removed)?)
}

/// Adds a key and its idempotency record.
fn add(tx: &mut Tx<'_>, key: ApiKey, idempotency_key: Option<&IdempotencyKey>) -> Step<ApiKey> {
    put(tx, &key)?;
    let shown = layout::to_json(&key.without_hash())?;
    idempotency::insert_record(tx, idempotency_key, 0, shown, key.created_at);
    Ok(key)
}
