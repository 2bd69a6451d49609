//! The handlers, one file per resource, and the table of all operations.

pub(crate) mod about;
mod forms;
mod manage_submissions;
mod submissions;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Code;
use crate::http::openapi;
use crate::http::wire::problem::ApiError;
use crate::http::wire::state::Shared;

/// Returns the routes of all operations.
pub(crate) fn operations() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(openapi::Api::openapi())
        .routes(routes!(forms::list_forms, forms::create_form))
        .routes(routes!(forms::get_form, forms::update_form, forms::delete_form))
        .routes(routes!(forms::restore_form))
        .routes(routes!(forms::list_versions))
        .routes(routes!(forms::get_version))
        .routes(routes!(forms::get_schema))
        .routes(routes!(submissions::list_submissions, submissions::create_submission))
        .routes(routes!(
            submissions::get_submission,
            manage_submissions::edit_submission,
            manage_submissions::delete_submission
        ))
        .routes(routes!(manage_submissions::restore_submission))
        .routes(routes!(manage_submissions::list_submission_history))
        .routes(routes!(about::whoami))
        .routes(routes!(about::get_limits))
        .routes(routes!(about::get_openapi))
        .routes(routes!(about::explain_problem))
        .routes(routes!(about::get_health))
        .routes(routes!(about::get_readiness))
}

/// Adds the routes that are not operations of their own: `/responses`, the alias of `/submissions`, and the fallbacks for
/// unknown paths and methods.
pub(crate) fn with_aliases(routes: Router<Shared>) -> Router<Shared> {
    routes
        // The alias of submissions uses the same handlers, so the same operations.
        .route(
            "/api/v1/forms/{form}/responses",
            get(submissions::list_submissions).post(submissions::create_submission),
        )
        .route(
            "/api/v1/forms/{form}/responses/{submission}",
            get(submissions::get_submission)
                .patch(manage_submissions::edit_submission)
                .delete(manage_submissions::delete_submission),
        )
        .route(
            "/api/v1/forms/{form}/responses/{submission}/restore",
            post(manage_submissions::restore_submission),
        )
        .route(
            "/api/v1/forms/{form}/responses/{submission}/history",
            get(manage_submissions::list_submission_history),
        )
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
}

async fn route_not_found() -> ApiError {
    ApiError::with_detail(Code::RouteNotFound, "there is nothing at this path; see /api/v1/openapi.json")
}

/// Responds to OPTIONS, and refuses all other methods; `Allow` lists the allowed ones in both cases.
pub(crate) async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let detail = format!("{method} is not allowed here; the header `Allow` lists the allowed methods");
        ApiError::with_detail(Code::MethodNotAllowed, detail).into_response()
    }
}
