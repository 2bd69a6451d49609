//! What handlers and extractors share.

use std::net::IpAddr;
use std::sync::Arc;

use crate::app::App;
use crate::config::HttpLimits;
use crate::http::openapi::DocumentText;
use crate::http::server::auth_failures::AuthFailures;
use crate::http::server::byte_budget::Budgets;

/// The address a request came from, for requests that came over a network.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What the handlers share.
pub(crate) type Shared = Arc<Desk>;

pub(crate) struct Desk {
    pub(crate) app: Arc<App>,
    pub(crate) limits: Arc<HttpLimits>,
    pub(crate) auth_failures: Option<AuthFailures>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) openapi: DocumentText,
}
