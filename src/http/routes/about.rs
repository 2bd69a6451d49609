//! Handlers about the server itself: caller, limits, API document, problem codes, health.

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::json as value;

use crate::api::{Code, LimitsView, Whoami, explain, schema};
use crate::app::{ApiError, Result};
use crate::config::HttpSettings;
use crate::domain::validation::limits::Limits;
use crate::http::openapi::text_at;
use crate::http::server::base_url::RequestBase;
use crate::http::wire::call::{Call, SendsText};
use crate::http::wire::extract::PathParams;
use crate::http::wire::query::{NoParams, QueryParams};
use crate::http::wire::responses::{json, json_text, metrics_text};
use crate::http::wire::state::Shared;
use crate::store::StoreHealth;

/// Get the caller
///
/// The workspace and the key of the request.
#[utoipa::path(
    get, path = "/api/v1/whoami", tag = "server",
    responses((status = 200, body = Whoami, description = "The caller"))
)]
pub(crate) async fn whoami(Call { session, .. }: Call) -> Result<Response> {
    json(&session.whoami().await?)
}

/// Get the server's limits
///
/// Sizes in bytes, times in seconds, rates as text.
#[utoipa::path(
    get, path = "/api/v1/limits", tag = "server",
    responses((status = 200, body = LimitsView, description = "The limits"))
)]
pub(crate) async fn get_limits(Call { shared, .. }: Call) -> Result<Response> {
    json(&limits_view(&shared.settings, &shared.app.limits))
}

fn limits_view(http: &HttpSettings, content: &Limits) -> LimitsView {
    let number = |size: usize| size as u64;
    LimitsView {
        max_body: number(http.max_body),
        max_definition: number(http.max_definition),
        max_batch: number(http.max_batch),
        max_questions: number(content.questions),
        max_options: number(content.options),
        max_title: number(content.title),
        max_answer: number(content.answer),
        max_answers: number(content.answers),
        max_uri: number(http.max_uri),
        max_head: number(http.max_head),
        max_headers: number(http.max_headers),
        head_timeout: http.head_timeout.as_secs_f64(),
        first_byte_timeout: http.first_byte_timeout.as_secs_f64(),
        body_timeout: http.body_timeout.as_secs_f64(),
        min_body_rate: u64::from(http.min_body_rate),
        idle_timeout: http.idle_timeout.as_secs_f64(),
        max_connections: number(http.max_connections),
        max_connections_per_address: number(http.connections_per_address()),
        auth_failures: http.auth_failures.map(|rate| rate.to_string()),
        rate_limit: http.rate_limit.map(|rate| rate.to_string()),
        page_rate: http.page_rate.map(|rate| rate.to_string()),
    }
}

/// Get this document
///
/// Needs no key, so that client generators can use its URL.
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "server", security(()),
    responses((status = 200, body = Object, description = "OpenAPI 3.1"))
)]
pub(crate) async fn get_openapi(
    State(shared): State<Shared>,
    base: Option<Extension<RequestBase>>,
    _: QueryParams<NoParams>,
) -> Response {
    json_text(match base {
        Some(Extension(RequestBase(url))) => text_at(&shared.openapi, &url),
        None => Bytes::clone(&shared.openapi),
    })
}

/// Get the JSON Schema of form files
///
/// In draft-07, for editors. Needs no key.
#[utoipa::path(
    get, path = "/schema/form.json", tag = "server", security(()),
    responses((status = 200, body = Object, description = "The schema"))
)]
pub(crate) async fn get_form_file_schema(_: QueryParams<NoParams>) -> Result<Response> {
    json(&schema::form_file())
}

/// Explain a problem
///
/// The meaning of a problem code or a rule, and what to do, as text. Needs no key.
#[utoipa::path(
    get, path = "/problems/{code}", tag = "server", security(()),
    responses((status = 200, body = String, description = "The meaning", content_type = "text/plain"))
)]
pub(crate) async fn explain_problem(
    PathParams(name): PathParams<String>,
    _: QueryParams<NoParams>,
) -> Result<String> {
    let meaning =
        explain(&name).ok_or_else(|| ApiError::with_detail(Code::RouteNotFound, "there is no such code"))?;
    Ok(match Code::parse(&name) {
        Some(code) => format!("{name} ({})\n{}.\n\n{meaning}\n", code.status(), code.title()),
        None => format!("{name}\n\n{meaning}\n"),
    })
}

/// Get the metrics
///
/// In the text format of Prometheus, version 0.0.4. `forms serve --metrics-listen` serves them without a key, on an address of
/// their own.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, description = "The metrics", content_type = "text/plain"))
)]
pub(crate) async fn get_metrics(Call { session, .. }: Call<(), NoParams, SendsText>) -> Result<Response> {
    Ok(metrics_text(session.render_metrics().await?))
}

/// Check that the server is alive
///
/// Needs no key.
#[utoipa::path(
    get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, body = ref("#/components/schemas/Health"), description = "It is alive"))
)]
pub(crate) async fn get_health() -> Result<Response> {
    json(&value!({ "status": "alive" }))
}

/// Check whether the server accepts requests
///
/// Needs no key. 503 while the store starts, rebuilds its index, is full or away, or the server stops.
#[utoipa::path(
    get, path = "/readyz", tag = "server", security(()),
    responses(
        (status = 200, body = ref("#/components/schemas/Readiness"), description = "It accepts requests"),
        (status = 503, body = ref("#/components/schemas/Readiness"), description = "It does not accept requests")
    )
)]
pub(crate) async fn get_readiness(State(shared): State<Shared>) -> Result<Response> {
    readiness(shared.app.health())
}

/// Returns the response of `/readyz`.
pub(crate) fn readiness(health: StoreHealth) -> Result<Response> {
    let condition = match health {
        StoreHealth::Ready => return json(&value!({ "status": "ready" })),
        // Reading still works, but a ready server accepts answers.
        StoreHealth::Full => value!({ "status": "full" }),
        StoreHealth::Rebuilding { done, total } => {
            value!({ "status": "rebuilding", "bytes_done": done, "bytes_total": total })
        }
        StoreHealth::Away(_) => value!({ "status": "away" }),
        StoreHealth::Stopped(_) => value!({ "status": "stopped" }),
    };
    let mut response = json(&condition)?;
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    Ok(response)
}
