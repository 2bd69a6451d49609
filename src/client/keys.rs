//! Operations on API keys and workspaces.

use super::{Client, ReceivedBody, Request, Result, join};
use crate::api::{Code, KeyDetail, NewKey, NewWorkspace, Rotate, WorkspaceDetail};

const KEYS: &str = "/api/v1/keys";
const WORKSPACES: &str = "/api/v1/workspaces";

impl Client {
    /// Creates an API key.
    pub async fn create_key(&self, new: &NewKey) -> Result<ReceivedBody<KeyDetail>> {
        self.call(Request::post(KEYS).json(new)).await
    }

    /// Lists the keys of the workspace, newest first.
    pub async fn list_keys(&self) -> Result<Vec<ReceivedBody<KeyDetail>>> {
        self.list(KEYS.to_owned(), "keys").await
    }

    /// Revokes a key.
    pub async fn revoke_key(&self, id: &str) -> Result<()> {
        self.send(&Request::delete(key_path(id)?)).await.map(drop)
    }

    /// Replaces a key by a new one with the same permissions.
    pub async fn rotate_key(&self, id: &str, rotation: &Rotate) -> Result<ReceivedBody<KeyDetail>> {
        self.call(Request::post(key_path(id)? + "/rotate").json(rotation)).await
    }

    /// Creates a workspace with its first key.
    pub async fn create_workspace(&self, new: &NewWorkspace) -> Result<ReceivedBody<WorkspaceDetail>> {
        self.call(Request::post(WORKSPACES).json(new)).await
    }

    /// Lists the workspaces of the server, newest first.
    pub async fn list_workspaces(&self) -> Result<Vec<ReceivedBody<WorkspaceDetail>>> {
        self.list(WORKSPACES.to_owned(), "workspaces").await
    }

    /// Deletes a workspace with everything in it.
    pub async fn delete_workspace(&self, id: &str) -> Result<()> {
        let path = join(WORKSPACES, Code::WorkspaceNotFound, "workspace", id)?;
        self.send(&Request::delete(path)).await.map(drop)
    }
}

fn key_path(id: &str) -> Result<String> {
    join(KEYS, Code::KeyNotFound, "key", id)
}
