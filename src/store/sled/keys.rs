//! Workspaces and API keys in the embedded store.

use std::sync::Arc;

use async_trait::async_trait;

use super::engine::operation::WriteKind;
use super::engine::tx::Direction;
use super::{SledStore, layout};
use crate::domain::workspace::{ApiKey, Workspace};
use crate::id::WorkspaceId;
use crate::secret::KeyId;
use crate::store::{Keys, Result};

#[async_trait]
impl Keys for SledStore {
    async fn bootstrap(&self, workspace: Workspace, key: ApiKey) -> Result<bool> {
        let random = Arc::clone(&self.random);
        self.engine
            .write(move |tx| {
                if !tx.scan(layout::all(layout::WORKSPACES), Direction::Ascending, 1)?.is_empty() {
                    return Ok(false);
                }
                let mut signing_key = [0; 32];
                random.fill(&mut signing_key);
                tx.put(layout::SIGNING_KEY.to_vec(), signing_key.to_vec());
                tx.put(layout::workspace(workspace.id), layout::to_json(&workspace)?);
                tx.put(layout::api_key(key.id), layout::to_json(&key)?);
                Ok(true)
            })
            .await
    }

    async fn insert_workspace(&self, workspace: Workspace) -> Result<()> {
        self.put(WriteKind::Normal, layout::workspace(workspace.id), layout::to_json(&workspace)?).await
    }

    async fn insert_key(&self, key: ApiKey) -> Result<()> {
        self.put(WriteKind::Normal, layout::api_key(key.id), layout::to_json(&key)?).await
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Arc<ApiKey>>> {
        let key = layout::api_key(id);
        self.keys.get(&key, || self.reader.get(&key), |body| layout::from_json("an API key", body))
    }

    async fn list_workspaces(&self) -> Result<Vec<Workspace>> {
        let rows = self.reader.scan(layout::all(layout::WORKSPACES), Direction::Ascending, usize::MAX)?;
        rows.iter().map(|(_, body)| layout::decode_workspace(body)).collect()
    }

    async fn find_workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        self.reader.get(&layout::workspace(id))?.map(|body| layout::decode_workspace(&body)).transpose()
    }
}
