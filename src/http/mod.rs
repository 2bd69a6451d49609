//! HTTP: the API's routes, and the loop that serves them.
//!
//! Handlers extract, call [`App`] and shape the answer; no rule lives here. Every error is a problem document.
//! [`router`] has the one list of routes, of which `openapi.json` is made.

mod about;
mod accept;
mod answer;
mod auth;
mod auth_failures;
mod body;
mod budget;
mod compress;
mod conditional;
mod connection;
mod connection_table;
mod deadlines;
mod document;
mod extract;
mod forms;
mod frame;
mod head;
mod problem;
mod query;
mod refusal;
mod request_id;
mod sending;
pub mod serve;
mod submission_life;
mod submissions;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Code;
use crate::app::App;
use crate::config::HttpLimits;
use crate::cpu_pool::CpuPool;
use crate::store::Health;
use auth_failures::AuthFailures;
use budget::Budgets;
use document::DocumentText;
pub use frame::Framed;
use problem::Failure;

/// The address a request came from, for requests that came over a network.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What the handlers share.
type Shared = Arc<Desk>;

struct Desk {
    app: Arc<App>,
    limits: Arc<HttpLimits>,
    auth_failures: Option<AuthFailures>,
    budgets: Arc<Budgets>,
    openapi: DocumentText,
}

/// The API on `app`.
pub fn router(app: Arc<App>, limits: HttpLimits) -> Framed {
    let (routes, document) = routes().split_for_parts();
    let (limits, budgets) = (Arc::new(limits), Arc::new(Budgets::new(app.pool().clone())));
    let shared = Arc::new(Desk {
        app,
        auth_failures: limits.auth_failures.map(AuthFailures::new),
        limits: Arc::clone(&limits),
        budgets: Arc::clone(&budgets),
        openapi: DocumentText::new(document),
    });
    let routes = routes
        // The other name of submissions: the same handlers, so the same operations.
        .route(
            "/api/v1/forms/{form}/responses",
            get(submissions::list_submissions).post(submissions::create_submission),
        )
        .route(
            "/api/v1/forms/{form}/responses/{submission}",
            get(submissions::get_submission)
                .patch(submission_life::edit_submission)
                .delete(submission_life::delete_submission),
        )
        .route(
            "/api/v1/forms/{form}/responses/{submission}/restore",
            post(submission_life::restore_submission),
        )
        .route(
            "/api/v1/forms/{form}/responses/{submission}/history",
            get(submission_life::list_submission_history),
        )
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(shared);
    Framed::new(routes, limits, budgets)
}

/// What is served while the store opens, which may take long: its condition, and 503 for everything else.
pub fn starting(limits: HttpLimits, health: Arc<dyn Fn() -> Health + Send + Sync>) -> Framed {
    let ready = move || std::future::ready(about::readiness(health()));
    let routes = Router::new()
        .route("/healthz", get(about::get_health))
        .route("/readyz", get(ready))
        .fallback(async || Failure::new(Code::StoreUnavailable).retry_after(5));
    Framed::new(routes, Arc::new(limits), Arc::new(Budgets::new(CpuPool::default())))
}

/// All operations.
fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(document::Api::openapi())
        .routes(routes!(forms::list_forms, forms::create_form))
        .routes(routes!(forms::get_form, forms::update_form, forms::delete_form))
        .routes(routes!(forms::restore_form))
        .routes(routes!(forms::list_versions))
        .routes(routes!(forms::get_version))
        .routes(routes!(forms::get_schema))
        .routes(routes!(submissions::list_submissions, submissions::create_submission))
        .routes(routes!(
            submissions::get_submission,
            submission_life::edit_submission,
            submission_life::delete_submission
        ))
        .routes(routes!(submission_life::restore_submission))
        .routes(routes!(submission_life::list_submission_history))
        .routes(routes!(about::whoami))
        .routes(routes!(about::get_limits))
        .routes(routes!(about::get_openapi))
        .routes(routes!(about::explain_problem))
        .routes(routes!(about::get_health))
        .routes(routes!(about::get_readiness))
}

async fn route_not_found() -> Failure {
    Failure::because(Code::RouteNotFound, "nothing is at this address; see /api/v1/openapi.json")
}

/// Answers OPTIONS, and refuses all other methods; which ones there are is told by `Allow` either way.
async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let detail = format!("{method} is not among the methods that the header `Allow` lists");
        Failure::because(Code::MethodNotAllowed, detail).into_response()
    }
}
