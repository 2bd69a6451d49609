//! State shared by handlers and extractors.

use std::net::IpAddr;
use std::sync::Arc;

use crate::app::{ApiError, App};
use crate::config::HttpSettings;
use crate::domain::workspace::Caller;
use crate::http::openapi::DocumentText;
use crate::http::server::budget::Budgets;
use crate::http::server::rate_limiter::RateLimiter;
use crate::secret::KeyId;

/// Request extension: the address of the client, for requests received over a network. At first that of the connection's
/// peer, which may be a proxy.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

/// Request extension: all connections are taken, so only health checks are handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HealthChecksOnly;

/// Request extension: the caller of requests without a key, for those made by a command that has opened the store itself.
/// Nothing that is received over a network can set it.
#[derive(Debug, Clone)]
pub struct LocalOperator(pub Caller);

/// Response extension: the error behind an HTML page, to be logged with the request id.
#[derive(Debug, Clone)]
pub(crate) struct PageFailure(pub(crate) ApiError);

/// The state as handlers receive it.
pub(crate) type Shared = Arc<AppState>;

pub(crate) struct AppState {
    pub(crate) app: Arc<App>,
    pub(crate) settings: Arc<HttpSettings>,
    /// Failed authentications by network: an IPv4 address, or the /64 of an IPv6 one, which belongs to one customer.
    pub(crate) auth_failures: Option<RateLimiter<IpAddr>>,
    /// Answers sent from pages, by network.
    pub(crate) page_posts: Option<RateLimiter<IpAddr>>,
    /// Requests by API key.
    pub(crate) requests: Option<RateLimiter<KeyId>>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) openapi: DocumentText,
}
