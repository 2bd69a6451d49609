//! Handlers of API keys.
#![expect(unused_qualifications, reason = "the attribute of utoipa writes them")]

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use utoipa::IntoParams;

use crate::api::{KeyDetail, KeyList};
use crate::app::Result;
use crate::http::wire::call::Call;
use crate::http::wire::extract::{read_json, read_optional_json};
use crate::http::wire::query::{FromQuery, QueryReader};
use crate::http::wire::responses::{created_response, json, with_replayed};

/// Query of an operation on the keys of a workspace.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WorkspaceQuery {
    /// The workspace, if it is not that of the request.
    workspace: Option<String>,
}

impl FromQuery for WorkspaceQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        Self { workspace: query.text("workspace") }
    }
}

/// Create an API key
///
/// `key` is the text of the key, and is shown only here: the server keeps a hash, and a repeated request gets the response
/// without it. The new key cannot have more scopes than the one that creates it, unless an operator names the `workspace`.
/// Only an operator can give the scope `operator`.
#[utoipa::path(
    post, path = "/api/v1/keys", tag = "keys",
    request_body(content = ref("#/components/schemas/NewKey"), description = "The key"),
    responses((status = 201, body = KeyDetail, description = "The key, with its text"))
)]
pub(crate) async fn create_key(Call { session, shared, .. }: Call, request: Request) -> Result<Response> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let created = session.create_key(body.repeatable()?).await?;
    let replayed = created.key.is_none();
    if !replayed {
        tracing::info!(key = %created.id, workspace = %created.workspace, by = %session.caller.id, "an API key was created");
    }
    let location = format!("/api/v1/keys/{}", created.id);
    Ok(created_response(json(&created)?, location, replayed))
}

/// List API keys
///
/// All keys of the workspace, newest first, without their texts.
#[utoipa::path(
    get, path = "/api/v1/keys", tag = "keys", params(WorkspaceQuery),
    responses((status = 200, body = KeyList, description = "The keys"))
)]
pub(crate) async fn list_keys(
    Call { session, query: WorkspaceQuery { workspace }, .. }: Call<(), WorkspaceQuery>,
) -> Result<Response> {
    json(&session.list_keys(workspace.as_deref()).await?)
}

/// Revoke an API key
///
/// It is not valid any more, from the next request on. Only an operator can revoke a key with the scope `operator`.
#[utoipa::path(
    delete, path = "/api/v1/keys/{key}", tag = "keys", params(WorkspaceQuery),
    responses((status = 204, description = "It was revoked"))
)]
pub(crate) async fn revoke_key(
    Call { session, path: key, query: WorkspaceQuery { workspace }, .. }: Call<String, WorkspaceQuery>,
) -> Result<StatusCode> {
    session.revoke_key(&key, workspace.as_deref()).await?;
    tracing::info!(key, by = %session.caller.id, "an API key was revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// Rotate an API key
///
/// Creates a key with the same name, scopes, limits and expiry. The old one ends at once, or after `grace`, but never later
/// than its own expiry. The response is that of a creation. Only an operator can rotate a key with the scope `operator`.
#[utoipa::path(
    post, path = "/api/v1/keys/{key}/rotate", tag = "keys",
    request_body(content = ref("#/components/schemas/RotateKey"), description = "How long the old key stays valid"),
    responses((status = 200, body = KeyDetail, description = "The new key, with its text"))
)]
pub(crate) async fn rotate_key(
    Call { session, shared, path: key, .. }: Call<String>,
    request: Request,
) -> Result<Response> {
    let body = read_optional_json(request, &shared).await?;
    let created = session.rotate_key(&key, body.repeatable()?).await?;
    let replayed = created.key.is_none();
    if !replayed {
        tracing::info!(key, next = %created.id, by = %session.caller.id, "an API key was rotated");
    }
    Ok(with_replayed(json(&created)?, replayed))
}
