//! The API over HTTP.
//!
//! `routes/` has the handlers: they extract, call [`App`] and shape the response; no rule lives here. `wire/` reads requests
//! and writes responses, every error as a problem document. `server/` accepts connections and keeps their deadlines and
//! limits. `openapi/` makes `openapi.json` of the routes.

mod openapi;
mod routes;
pub mod server;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::api::Code;
use crate::app::App;
use crate::config::HttpLimits;
use crate::cpu_pool::CpuPool;
use crate::http::openapi::DocumentText;
use crate::http::routes::about;
use crate::http::server::auth_failures::AuthFailures;
use crate::http::server::byte_budget::Budgets;
use crate::http::wire::problem::Failure;
use crate::http::wire::state::Desk;
use crate::store::Health;

pub use crate::http::server::http_service::Framed;
pub use crate::http::wire::state::Peer;

/// The API on `app`.
pub fn router(app: Arc<App>, limits: HttpLimits) -> Framed {
    let (routes, document) = routes::operations().split_for_parts();
    let (limits, budgets) = (Arc::new(limits), Arc::new(Budgets::new(app.pool().clone())));
    let shared = Arc::new(Desk {
        app,
        auth_failures: limits.auth_failures.map(AuthFailures::new),
        limits: Arc::clone(&limits),
        budgets: Arc::clone(&budgets),
        openapi: DocumentText::new(document),
    });
    let routes = routes::with_aliases(routes).with_state(shared);
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
