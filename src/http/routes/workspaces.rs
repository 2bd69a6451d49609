//! Handlers of workspaces.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;

use crate::api::{WorkspaceDetail, WorkspaceList};
use crate::app::Result;
use crate::http::wire::call::Call;
use crate::http::wire::extract::read_json;
use crate::http::wire::responses::{created_response, json};

/// Create a workspace
///
/// `key` is the text of its first API key, which has the scope `admin`. It is shown only here: the server keeps a hash, and
/// a repeated request gets the response without it.
#[utoipa::path(
    post, path = "/api/v1/workspaces", tag = "workspaces",
    request_body(content = ref("#/components/schemas/NewWorkspace"), description = "The workspace"),
    responses((status = 201, body = WorkspaceDetail, description = "The workspace, with the text of its first key"))
)]
pub(crate) async fn create_workspace(
    Call { session, shared, .. }: Call,
    request: Request,
) -> Result<Response> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let created = session.create_workspace(body.repeatable()?).await?;
    let replayed = created.key.is_none();
    if !replayed {
        tracing::info!(workspace = %created.id, by = %session.caller.id, "a workspace was created");
    }
    let location = format!("/api/v1/workspaces/{}", created.id);
    Ok(created_response(json(&created)?, location, replayed))
}

/// List workspaces
///
/// All workspaces of the server, newest first.
#[utoipa::path(
    get, path = "/api/v1/workspaces", tag = "workspaces",
    responses((status = 200, body = WorkspaceList, description = "The workspaces"))
)]
pub(crate) async fn list_workspaces(Call { session, .. }: Call) -> Result<Response> {
    json(&session.list_workspaces().await?)
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
    Call { session, path: workspace, .. }: Call<String>,
) -> Result<StatusCode> {
    session.delete_workspace(&workspace).await?;
    tracing::info!(workspace, by = %session.caller.id, "a workspace was deleted");
    Ok(StatusCode::NO_CONTENT)
}
