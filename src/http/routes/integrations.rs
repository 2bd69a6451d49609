//! Handlers of integrations.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::value::RawValue;

use crate::api::{IntegrationDetail, IntegrationHealth, IntegrationList, SecretRotated};
use crate::app::IntegrationView;
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::Attempt;
use crate::http::wire::authenticated::Authenticated;
use crate::http::wire::conditional::{IfMatch, with_etag};
use crate::http::wire::extract::{PathParams, read_empty_body, read_json, read_optional_json, read_patch};
use crate::http::wire::problem::ApiError;
use crate::http::wire::query::{NoParams, QueryParams};
use crate::http::wire::responses::{created_response, json, json_text, replayable};
use crate::secret::Secret;

/// List a form's integrations
///
/// Where the form sends its events, with the health of each.
#[utoipa::path(
    get, path = "/api/v1/forms/{form}/integrations", tag = "integrations",
    responses((status = 200, body = IntegrationList, description = "The integrations",
        headers(("ETag" = String))))
)]
pub(crate) async fn list_integrations(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    let (form, views) = shared.app.list_integrations(&caller, &form).await?;
    let items = views.iter().map(|view| RawValue::from_string(detail(view)));
    let list = IntegrationList { integrations: items.collect::<Result<_, _>>()? };
    Ok(with_etag(json(&list)?, form.revision))
}

/// Create an integration
///
/// It gets the events that happen from now on. A signing secret that the server makes is shown only here: a repeated request
/// gets the response without it.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/integrations", tag = "integrations",
    request_body(content = ref("#/components/schemas/Integration"), description = "The integration"),
    responses((status = 201, body = ref("#/components/schemas/Integration"), description = "The integration",
        headers(("Location" = String), ("Idempotency-Replayed" = String))))
)]
pub(crate) async fn create_integration(
    Authenticated { caller, shared }: Authenticated,
    PathParams(form): PathParams<String>,
    _: QueryParams<NoParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, shared.settings.max_body, &shared).await?;
    let (text, replayed) = shared.app.create_integration(&caller, &form, body.repeatable()?, detail).await?;
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
    Authenticated { caller, shared }: Authenticated,
    PathParams((form, integration)): PathParams<(String, String)>,
    _: QueryParams<NoParams>,
) -> Result<Response, ApiError> {
    Ok(integration_response(&shared.app.get_integration(&caller, &form, &integration).await?))
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
    Authenticated { caller, shared }: Authenticated,
    PathParams((form, integration)): PathParams<(String, String)>,
    _: QueryParams<NoParams>,
    IfMatch(expected): IfMatch,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_patch(request, shared.settings.max_body, &shared).await?;
    let updated =
        shared.app.update_integration(&caller, &form, &integration, body.as_str(), &expected).await?;
    Ok(integration_response(&updated))
}

/// Delete an integration
///
/// Deliveries that wait are canceled.
#[utoipa::path(
    delete, path = "/api/v1/forms/{form}/integrations/{integration}", tag = "integrations",
    responses((status = 204, description = "It was deleted"))
)]
pub(crate) async fn delete_integration(
    Authenticated { caller, shared }: Authenticated,
    PathParams((form, integration)): PathParams<(String, String)>,
    _: QueryParams<NoParams>,
    IfMatch(expected): IfMatch,
) -> Result<StatusCode, ApiError> {
    shared.app.delete_integration(&caller, &form, &integration, &expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Test an integration
///
/// Sends the event `integration.test` at once, even if the integration is not enabled. The response is the attempt, whether it
/// succeeded or not.
#[utoipa::path(
    post, path = "/api/v1/forms/{form}/integrations/{integration}/test", tag = "integrations",
    responses((status = 200, body = ref("#/components/schemas/AttemptView"), description = "The attempt",
        headers(("Idempotency-Replayed" = String))))
)]
pub(crate) async fn test_integration(
    Authenticated { caller, shared }: Authenticated,
    PathParams((form, integration)): PathParams<(String, String)>,
    _: QueryParams<NoParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_empty_body(request, &shared).await?;
    let response = shared
        .app
        .test_integration(&caller, &form, &integration, body.repeatable()?, to_json::<Attempt>)
        .await?;
    Ok(replayable(response))
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
    responses((status = 200, body = SecretRotated, description = "The new secret",
        headers(("Idempotency-Replayed" = String))))
)]
pub(crate) async fn rotate_secret(
    Authenticated { caller, shared }: Authenticated,
    PathParams((form, integration)): PathParams<(String, String)>,
    _: QueryParams<NoParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_optional_json(request, &shared).await?;
    let response =
        shared.app.rotate_secret(&caller, &form, &integration, body.repeatable()?, rotated_json).await?;
    Ok(replayable(response))
}

/// Returns the JSON of an integration.
fn detail(view: &IntegrationView) -> String {
    let IntegrationView { integration, totals, secret, .. } = view;
    let health = IntegrationHealth::new(&totals.health, totals.pending, totals.dead);
    IntegrationDetail::json(integration, &health, secret.as_ref())
}

/// Returns an integration, with the `ETag` of its form's revision.
fn integration_response(view: &IntegrationView) -> Response {
    with_etag(json_text(detail(view)), view.form.revision)
}

fn rotated_json(secret: Option<Secret<String>>, previous_valid_until: Timestamp) -> String {
    to_json(&SecretRotated { secret, previous_valid_until })
}

/// Serializes a body of texts and numbers, which cannot fail.
pub(crate) fn to_json<T: serde::Serialize>(body: &T) -> String {
    serde_json::to_string(body).expect("texts and numbers can be written as JSON")
}
