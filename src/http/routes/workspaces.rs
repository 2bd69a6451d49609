//! Handlers of workspaces.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;

use crate::api::{WorkspaceDetail, WorkspaceList};
use crate::http::wire::authenticated::Authenticated;
use crate::http::wire::extract::{PathParams, read_json};
use crate::http::wire::problem::ApiError;
use crate::http::wire::query::{NoParams, QueryParams};
use crate::http::wire::responses::{created_response, json};

/// Create a workspace
///
/// `key` is the text of its first API key, which has the scope `admin`. It is shown only here: the server keeps a hash, and
/// a repeated request gets the response without it.
#[utoipa::path(
    post, path = "/api/v1/workspaces", tag = "workspaces",
    request_body(content = ref("#/components/schemas/NewWorkspace"), description = "The workspace"),
    responses((status = 201, body = WorkspaceDetail, description = "The workspace, with the text of its first key",
        headers(("Location" = String), ("Idempotency-Replayed" = String))))
)]
pub(crate) async fn create_workspace(
    Authenticated { caller, shared }: Authenticated,
    _: QueryParams<NoParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let (created, text) = shared.app.create_workspace(&caller, body.repeatable()?).await?;
    if text.is_some() {
        tracing::info!(workspace = %created.id, by = %caller.id, "a workspace was created");
    }
    let location = format!("/api/v1/workspaces/{}", created.id);
    let response = json(&WorkspaceDetail::new(created, text.as_ref()))?;
    Ok(created_response(response, location, text.is_none()))
}

/// List workspaces
///
/// All workspaces of the server, newest first.
#[utoipa::path(
    get, path = "/api/v1/workspaces", tag = "workspaces",
    responses((status = 200, body = WorkspaceList, description = "The workspaces"))
)]
pub(crate) async fn list_workspaces(
    Authenticated { caller, shared }: Authenticated,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    let found = shared.app.list_workspaces(&caller).await?;
    json(&WorkspaceList {
        workspaces: found.into_iter().map(|found| WorkspaceDetail::new(found, None)).collect(),
    })
}

/// Delete a workspace
///
/// Its keys end at once, and its forms are erased with their submissions. The workspace of the request's own key cannot be
/// deleted.
#[utoipa::path(
    delete, path = "/api/v1/workspaces/{workspace}", tag = "workspaces",
    responses((status = 204, description = "It was deleted"))
)]
pub(crate) async fn delete_workspace(
    Authenticated { caller, shared }: Authenticated,
    PathParams(workspace): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<StatusCode, ApiError> {
    shared.app.delete_workspace(&caller, &workspace).await?;
    tracing::info!(workspace, by = %caller.id, "a workspace was deleted");
    Ok(StatusCode::NO_CONTENT)
}
