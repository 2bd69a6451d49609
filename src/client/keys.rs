//! Operations on API keys and workspaces.

use reqwest::Method;
use serde::Deserialize;

use super::{Client, ClientError, ReceivedBody, Request, check_name, to_json};
use crate::api::{Code, KeyDetail, NewKey, NewWorkspace, Rotate, WorkspaceDetail};

const KEYS: &str = "/api/v1/keys";
const WORKSPACES: &str = "/api/v1/workspaces";

impl Client {
    /// Creates an API key. If an earlier attempt created it and its response was lost, the text of the key is lost, too.
    pub async fn create_key(&self, new: &NewKey) -> Result<ReceivedBody<KeyDetail>, ClientError> {
        self.call(Request::post(KEYS).body(&to_json(new))).await
    }

    /// Lists the keys of the workspace, newest first.
    pub async fn list_keys(&self) -> Result<Vec<ReceivedBody<KeyDetail>>, ClientError> {
        Ok(self.call::<KeyPage>(Request::get(KEYS)).await?.keys)
    }

    /// Revokes a key. After a lost response, 404 counts as success.
    pub async fn revoke_key(&self, id: &str) -> Result<(), ClientError> {
        self.send(&Request::new(Method::DELETE, key_path(id)?)).await.map(drop)
    }

    /// Replaces a key by a new one with the same permissions. If an earlier attempt did it and its response was lost, the
    /// text of the new key is lost, too.
    pub async fn rotate_key(
        &self,
        id: &str,
        rotation: &Rotate,
    ) -> Result<ReceivedBody<KeyDetail>, ClientError> {
        self.call(Request::post(key_path(id)? + "/rotate").body(&to_json(rotation))).await
    }

    /// Creates a workspace with its first key. If an earlier attempt created it and its response was lost, the text of the
    /// key is lost, too.
    pub async fn create_workspace(
        &self,
        new: &NewWorkspace,
    ) -> Result<ReceivedBody<WorkspaceDetail>, ClientError> {
        self.call(Request::post(WORKSPACES).body(&to_json(new))).await
    }

    /// Lists the workspaces of the server, newest first.
    pub async fn list_workspaces(&self) -> Result<Vec<ReceivedBody<WorkspaceDetail>>, ClientError> {
        Ok(self.call::<WorkspacePage>(Request::get(WORKSPACES)).await?.workspaces)
    }

    /// Deletes a workspace with everything in it. After a lost response, 404 counts as success.
    pub async fn delete_workspace(&self, id: &str) -> Result<(), ClientError> {
        check_name(id, Code::WorkspaceNotFound, "workspace")?;
        self.send(&Request::new(Method::DELETE, format!("{WORKSPACES}/{id}"))).await.map(drop)
    }
}

#[derive(Deserialize)]
struct KeyPage {
    keys: Vec<ReceivedBody<KeyDetail>>,
}

#[derive(Deserialize)]
struct WorkspacePage {
    workspaces: Vec<ReceivedBody<WorkspaceDetail>>,
}

fn key_path(id: &str) -> Result<String, ClientError> {
    check_name(id, Code::KeyNotFound, "key")?;
    Ok(format!("{KEYS}/{id}"))
}
