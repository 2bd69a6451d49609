//! Handlers of integrations.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;

use crate::api::{IntegrationDetail, IntegrationList, SecretRotated};
use crate::app::Result;
use crate::http::wire::call::Call;
use crate::http::wire::conditional::{IfMatch, with_etag};
use crate::http::wire::extract::{read_empty_body, read_json, read_optional_json, read_patch};
use crate::http::wire::responses::{created_response, json, json_text, replayable};

/// List a form's integrations
///
/// Where the form sends its events, with the health of each.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/integrations", tag = "integrations",
    responses((status = 200, body = IntegrationList, description = "The integrations",
        headers(("ETag" = String))))
)]
pub(crate) async fn list_integrations(Call { session, path: form, .. }: Call<String>) -> Result<Response> {
    let (list, revision) = session.list_integrations(&form).await?;
    Ok(with_etag(json(&list)?, revision))
}

/// Create an integration
///
/// It gets the events that happen from now on. A signing secret that the server makes is shown only here: a repeated request
/// gets the response without it.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/integrations", tag = "integrations",
    request_body(content = ref("#/components/schemas/Integration"), description = "The integration"),
    responses((status = 201, body = ref("#/components/schemas/Integration"), description = "The integration"))
)]
pub(crate) async fn create_integration(
    Call { session, shared, path: form, .. }: Call<String>,
    request: Request,
) -> Result<Response> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let (text, replayed) = session.create_integration(&form, body.repeatable()?).await?;
    let id = serde_json::from_str::<IntegrationDetail>(&text)?.id;
    let location = format!("/api/v1/forms/{form}/integrations/{id}");
    Ok(created_response(json_text(text), location, replayed))
}

/// Get an integration
///
/// By name or id. Secrets are never shown.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/integrations/{integration}", tag = "integrations",
    responses((status = 200, body = ref("#/components/schemas/Integration"), description = "The integration",
        headers(("ETag" = String))))
)]
pub(crate) async fn get_integration(
    Call { session, path: (form, integration), .. }: Call<(String, String)>,
) -> Result<Response> {
    let (integration, revision) = session.get_integration(&form, &integration).await?;
    Ok(with_etag(json(&integration)?, revision))
}

/// Update an integration
///
/// A JSON merge patch (RFC 7396). `{"enabled":false}` stops it: new events are not sent. `{"enabled":true}` also ends a pause
/// by the server, and sends again what failed for good since it fails.
#[utoipa::path(
    patch, path = "/api/v1/forms/{form}/integrations/{integration}", tag = "integrations",
    request_body(content = ref("#/components/schemas/IntegrationPatch"), description = "The changes"),
    responses((status = 200, body = ref("#/components/schemas/Integration"), description = "The integration",
        headers(("ETag" = String))))
)]
pub(crate) async fn update_integration(
    Call { session, shared, path: (form, integration), .. }: Call<(String, String)>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Result<Response> {
    let body = read_patch(request, shared.settings.max_body, &shared).await?;
    let (integration, revision) =
        session.update_integration(&form, &integration, body.as_str(), &expected).await?;
    Ok(with_etag(json(&integration)?, revision))
}

/// Delete an integration
///
/// Deliveries that wait are canceled.
#[utoipa::path(
    delete, path = "/api/v1/forms/{form}/integrations/{integration}", tag = "integrations",
    responses((status = 204, description = "It was deleted"))
)]
pub(crate) async fn delete_integration(
    Call { session, path: (form, integration), .. }: Call<(String, String)>,
    IfMatch(expected): IfMatch,
) -> Result<StatusCode> {
    session.delete_integration(&form, &integration, &expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Test an integration
///
/// Sends the event `integration.test` at once, even if the integration is not enabled. The response is the attempt, whether it
/// succeeded or not.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/integrations/{integration}/test", tag = "integrations",
    responses((status = 200, body = ref("#/components/schemas/AttemptView"), description = "The attempt"))
)]
pub(crate) async fn test_integration(
    Call { session, shared, path: (form, integration), .. }: Call<(String, String)>,
    request: Request,
) -> Result<Response> {
    let body = read_empty_body(request, &shared).await?;
    Ok(replayable(session.test_integration(&form, &integration, body.repeatable()?).await?))
}

/// Rotate the signing secret of an integration
///
/// The new secret is shown only here. For `grace`, 24 hours by default, requests are signed with the old one too.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/integrations/{integration}/rotate-secret", tag = "integrations",
    request_body(
        content = ref("#/components/schemas/RotateSecret"),
        description = "How long the old secret signs too"
    ),
    responses((status = 200, body = SecretRotated, description = "The new secret"))
)]
pub(crate) async fn rotate_secret(
    Call { session, shared, path: (form, integration), .. }: Call<(String, String)>,
    request: Request,
) -> Result<Response> {
    let body = read_optional_json(request, &shared).await?;
    Ok(replayable(session.rotate_secret(&form, &integration, body.repeatable()?).await?))
}
