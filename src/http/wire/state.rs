//! State shared by handlers and extractors.

use std::net::IpAddr;
use std::sync::Arc;

use crate::app::App;
use crate::config::HttpLimits;
use crate::domain::workspace::Caller;
use crate::http::openapi::DocumentText;
use crate::http::server::auth_failures::AuthFailures;
use crate::http::server::byte_budget::Budgets;

/// Request extension: the client's address, for requests received over a network.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Request extension: the caller of requests without a key, for those made by a command that has opened the store itself.
/// Nothing that is received over a network can set it.
#[derive(Debug, Clone)]
pub struct LocalOperator(pub Caller);

/// The state as handlers receive it.
pub(crate) type Shared = Arc<AppState>;

/// State shared by all requests.
pub(crate) struct AppState {
    pub(crate) app: Arc<App>,
    pub(crate) limits: Arc<HttpLimits>,
    pub(crate) auth_failures: Option<AuthFailures>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) openapi: DocumentText,
}
