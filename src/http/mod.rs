//! The API over HTTP.
//!
//! `routes/` has the handlers: they extract, call [`App`] and build the response; business rules live elsewhere. `wire/` parses
//! requests and builds responses, every error as a problem document. `server/` accepts connections and enforces deadlines
//! and limits. `openapi/` generates `openapi.json` from the routes.

mod openapi;
mod routes;
pub mod server;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::api::Code;
use crate::app::ApiError;
use crate::app::App;
use crate::config::HttpSettings;
use crate::http::openapi::document_text;
use crate::http::routes::about;
use crate::http::server::budget::Budgets;
use crate::http::server::observer::RequestObserver;
use crate::http::server::rate_limiter::RateLimiter;
use crate::http::wire::responses::metrics_text;
use crate::http::wire::state::AppState;
use crate::store::StoreHealth;

pub use crate::http::server::http_service::HttpService;
pub use crate::http::wire::state::{ClientAddress, LocalOperator};

pub fn router(app: Arc<App>, settings: HttpSettings) -> HttpService {
    let (routes, document) = routes::operations();
    let templates = routes::templates(&document);
    let metrics = Arc::clone(&app.metrics);
    let budgets = Arc::new(Budgets::new(app.pool.clone(), settings.max_connections));
    let settings = Arc::new(settings);
    let shared = Arc::new(AppState {
        app,
        auth_failures: settings.auth_failures.map(RateLimiter::new),
        page_posts: settings.page_rate.map(RateLimiter::new),
        requests: settings.rate_limit.map(RateLimiter::new),
        settings: Arc::clone(&settings),
        budgets: Arc::clone(&budgets),
        openapi: document_text(document),
    });
    let observer = RequestObserver::new(metrics, templates);
    HttpService::new(routes.with_state(shared), settings, budgets).with_observer(observer)
}

/// Returns the service of the metrics' own address, which asks for no key.
pub fn metrics_only(app: Arc<App>, settings: HttpSettings) -> HttpService {
    let render = move || {
        let app = Arc::clone(&app);
        async move { metrics_text(app.render_metrics().await) }
    };
    let routes = Router::new()
        .route("/metrics", get(render))
        .fallback(routes::route_not_found)
        .method_not_allowed_fallback(routes::method_not_allowed);
    HttpService::of_routes(routes, settings)
}

/// Returns the service used while the store opens, which may take long: `/healthz`, `/readyz`, and 503 for everything else.
pub fn starting(settings: HttpSettings, health: Arc<dyn Fn() -> StoreHealth + Send + Sync>) -> HttpService {
    let ready = move || std::future::ready(about::readiness(health()));
    let routes = Router::new()
        .route("/healthz", get(about::get_health))
        .route("/readyz", get(ready))
        .fallback(async || ApiError::new(Code::StoreUnavailable).retry_after(5))
        .method_not_allowed_fallback(routes::method_not_allowed);
    HttpService::of_routes(routes, settings)
}
