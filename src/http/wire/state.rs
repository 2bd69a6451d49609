//! State shared by handlers and extractors.

use std::net::IpAddr;
use std::sync::Arc;

use crate::app::App;
use crate::config::HttpLimits;
use crate::http::openapi::DocumentText;
use crate::http::server::auth_failures::AuthFailures;
use crate::http::server::byte_budget::Budgets;

/// Request extension: the client's address, for requests received over a network.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

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
