//! The handlers, one file per resource, and the table of all operations.

pub(crate) mod about;
mod deliveries;
mod forms;
mod integrations;
mod keys;
mod pages;
mod store;
mod submissions;
mod workspaces;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Code;
use crate::app::ApiError;
use crate::http::openapi;
use crate::http::wire::state::Shared;

/// Returns the routes of all operations, and the document that describes them. Those of submissions have a second path each,
/// with `/responses` for `/submissions`.
pub(crate) fn operations() -> (Router<Shared>, Document) {
    let submissions = [
        routes!(submissions::list_submissions, submissions::create_submission),
        routes!(submissions::create_submissions),
        routes!(submissions::erase_submissions),
        routes!(submissions::get_submission, submissions::edit_submission, submissions::delete_submission),
        routes!(submissions::restore_submission),
        routes!(submissions::release_submission),
        routes!(submissions::list_submission_history),
    ];
    let mut aliases = Router::new();
    for (_, paths, methods) in &submissions {
        for path in paths.paths.keys() {
            aliases = aliases.route(&alias(path), methods.clone());
        }
    }
    let operations = OpenApiRouter::with_openapi(openapi::Api::openapi())
        .routes(routes!(forms::list_forms, forms::create_form))
        .routes(routes!(forms::get_form, forms::update_form, forms::delete_form))
        .routes(routes!(forms::restore_form))
        .routes(routes!(forms::list_versions))
        .routes(routes!(forms::get_version))
        .routes(routes!(forms::get_schema))
        .routes(routes!(forms::get_page_links))
        .routes(routes!(submissions::get_summary))
        .routes(routes!(integrations::list_integrations, integrations::create_integration))
        .routes(routes!(
            integrations::get_integration,
            integrations::update_integration,
            integrations::delete_integration
        ))
        .routes(routes!(integrations::test_integration))
        .routes(routes!(integrations::rotate_secret))
        .routes(routes!(deliveries::list_deliveries))
        .routes(routes!(deliveries::get_delivery_stats))
        .routes(routes!(deliveries::get_delivery))
        .routes(routes!(deliveries::list_attempts))
        .routes(routes!(deliveries::get_delivery_event))
        .routes(routes!(deliveries::redeliver))
        .routes(routes!(deliveries::cancel_delivery))
        .routes(routes!(deliveries::redeliver_all))
        .routes(routes!(deliveries::cancel_deliveries))
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::revoke_key))
        .routes(routes!(keys::rotate_key))
        .routes(routes!(workspaces::list_workspaces, workspaces::create_workspace))
        .routes(routes!(workspaces::delete_workspace))
        .routes(routes!(store::get_store))
        .routes(routes!(store::compact))
        .routes(routes!(store::verify))
        .routes(routes!(store::get_backup))
        .routes(routes!(about::get_metrics))
        .routes(routes!(about::whoami))
        .routes(routes!(about::get_limits))
        .routes(routes!(about::get_openapi))
        .routes(routes!(about::get_form_file_schema))
        .routes(routes!(about::explain_problem))
        .routes(routes!(about::get_health))
        .routes(routes!(about::get_readiness));
    let (routes, document) =
        submissions.into_iter().fold(operations, OpenApiRouter::routes).split_for_parts();
    let routes = routes
        .merge(aliases)
        .merge(pages::routes())
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed);
    (routes, document)
}

/// Returns the templates of all routes in `document`, and of their second paths.
pub(crate) fn templates(document: &Document) -> Vec<String> {
    let paths = document.paths.paths.keys();
    let aliases = paths.clone().filter(|path| path.contains("/submissions")).map(|path| alias(path));
    paths.cloned().chain(aliases).chain(pages::TEMPLATES.map(str::to_owned)).collect()
}

/// Returns the second path of an operation on submissions.
fn alias(path: &str) -> String {
    path.replace("/submissions", "/responses")
}

pub(crate) async fn route_not_found() -> ApiError {
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
