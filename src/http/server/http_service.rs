//! The outermost service: request id, limits on the request head, common response headers, and the access log.
//!
//! One plain function around the router instead of tower layers, which box and copy for each request: every submission
//! passes through here.

use std::any::Any;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tokio::time::timeout;
use tower::Service;

use crate::api::Code;
use crate::app::{ApiError, Result};
use crate::config::HttpSettings;
use crate::cpu_pool::CpuPool;
use crate::http::server::accept_loop::RequestService;
use crate::http::server::base_url::{RequestBase, add_base, base_url};
use crate::http::server::budget::{AuthenticatedKey, Budgets, uncharged};
use crate::http::server::client_address::client_address;
use crate::http::server::cors::Cors;
use crate::http::server::observer::RequestObserver;
use crate::http::server::request_head::{check_headers, check_host};
use crate::http::server::request_id::{X_REQUEST_ID, request_id};
use crate::http::server::response_body::prepare_response;
use crate::http::wire::accept::prefers_gzip;
use crate::http::wire::state::{ClientAddress, HealthChecksOnly, PageFailure};

/// Time to handle a request, besides the time that its body may take.
const HANDLING_TIMEOUT: Duration = Duration::from_secs(60);

/// The routes with everything that applies to every request. Cheap to clone.
#[derive(Clone)]
pub struct HttpService {
    routes: Router,
    settings: Arc<HttpSettings>,
    budgets: Arc<Budgets>,
    observer: Option<Arc<RequestObserver>>,
}

impl HttpService {
    pub(crate) fn new(routes: Router, settings: Arc<HttpSettings>, budgets: Arc<Budgets>) -> Self {
        Self { routes, settings, budgets, observer: None }
    }

    /// Returns it counting its requests.
    pub(crate) fn with_observer(self, observer: RequestObserver) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    /// Returns a service of other routes than the API's, with budgets of its own, which does not count its requests.
    pub fn of_routes(routes: Router, settings: HttpSettings) -> Self {
        let budgets = Budgets::new(CpuPool::default(), settings.max_connections);
        Self::new(routes, Arc::new(settings), Arc::new(budgets))
    }

    /// Converts the service into a router, for callers that need one.
    pub fn into_router(self) -> Router {
        Router::new().fallback_service(self)
    }

    async fn handle(mut self, mut request: Request) -> Response {
        let begun = Instant::now();
        let id = request_id(request.headers());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let prefers_gzip = prefers_gzip(request.headers());
        let cors = Cors::of_request(&request, &self.settings.cors_origins);
        let (base, client) = resolve_proxy(&mut request, &self.settings);
        let uncharged = uncharged(request.version());
        let authenticated_key = AuthenticatedKey::default();
        request.extensions_mut().insert(authenticated_key.clone());
        let response = match check_overload(&request).and_then(|()| check_head(&request, &self.settings)) {
            Ok(()) => {
                let limit = max_duration(&request, &self.settings);
                // A request that panicked is not polled again, and shared state is behind locks that recover from poisoning.
                let handling = AssertUnwindSafe(self.routes.call(request)).catch_unwind();
                match timeout(limit, handling).await {
                    Ok(Ok(Ok(response))) => response,
                    Ok(Err(payload)) => ApiError::panicked(panic_text(&*payload)).into_response(),
                    Err(_elapsed) => ApiError::unfinished(limit).into_response(),
                }
            }
            Err(error) => error.into_response(),
        };
        let text = id.to_str().unwrap_or_default();
        let mut response = render_error(response, text, &base);
        if let Some(PageFailure(error)) = response.extensions_mut().remove() {
            error.log(text);
        }
        if method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        let ready = prepare_response(
            response,
            &method,
            prefers_gzip,
            &self.budgets,
            authenticated_key.owner(),
            uncharged,
        )
        .await;
        let mut response = ready.unwrap_or_else(|error| error.render(text, &base).map(Body::from));
        if !base.is_empty() {
            add_base(response.headers_mut(), &base);
        }
        if let Some(cors) = cors {
            cors.add_headers(response.headers_mut());
        }
        set_common_headers(response.headers_mut(), &id);
        let took = begun.elapsed();
        if let Some(observer) = &self.observer {
            observer.count(uri.path(), &method, response.status(), took);
        }
        log_access(&method, uri.path(), &response, took, text, client, self.settings.access_log);
        response
    }
}

impl Service<Request> for HttpService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

impl RequestService for HttpService {
    fn on_connections(&self, open: usize) {
        if let Some(observer) = &self.observer {
            observer.metrics.connections.set(open as f64);
        }
    }
}

/// Replaces the peer's address by the client's, and returns it with the base URL of the request.
fn resolve_proxy(request: &mut Request, settings: &HttpSettings) -> (String, Option<IpAddr>) {
    let peer = request.extensions().get::<ClientAddress>().map(|ClientAddress(peer)| *peer);
    let is_from_proxy = peer.is_some_and(|peer| settings.is_trusted_proxy(peer));
    let base = base_url(request.headers(), is_from_proxy, settings);
    let client = peer.map(|peer| client_address(peer, request.headers(), settings));
    if let Some(client) = client.filter(|client| Some(*client) != peer) {
        request.extensions_mut().insert(ClientAddress(client));
    }
    if !base.is_empty() {
        request.extensions_mut().insert(RequestBase(base.clone()));
    }
    (base, client)
}

/// Writes the access log: errors at `info`, all else at `debug`, unless `is_wanted`. Formatting and writing a line costs as
/// much as storing a submission, so requests refused by overload are logged at `debug` too. A query may hold answers, and is
/// not logged.
fn log_access(
    method: &Method,
    path: &str,
    response: &Response,
    took: Duration,
    request_id: &str,
    client: Option<IpAddr>,
    is_wanted: bool,
) {
    let client = client.map(tracing::field::display);
    let (status, bytes) = (response.status(), response.body().size_hint().exact());
    let is_routine = status.as_u16() < 400 || status == StatusCode::SERVICE_UNAVAILABLE;
    let status = status.as_u16();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if is_routine && !is_wanted {
        tracing::debug!(target: "forms::access", %method, path, status, bytes, micros, request_id, client);
    } else {
        tracing::info!(target: "forms::access", %method, path, status, bytes, micros, request_id, client);
    }
}

/// Refuses all but health checks while all connections are taken.
fn check_overload(request: &Request) -> Result<()> {
    let is_overload = request.extensions().get::<HealthChecksOnly>().is_some();
    let is_health_check = matches!(request.uri().path(), "/healthz" | "/readyz");
    if is_overload && !is_health_check { Err(ApiError::overloaded()) } else { Ok(()) }
}

/// Checks the head of `request` against the limits. hyper's own limits are above these.
fn check_head(request: &Request, settings: &HttpSettings) -> Result<()> {
    let (uri, headers) = (request.uri(), request.headers());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let target = authority + uri.path_and_query().map_or(0, |target| target.as_str().len());
    // Every line has a colon, a space and a line end besides its name and value.
    let size = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    for (code, subject, actual, unit, limit) in [
        (Code::UriTooLong, "the URI has", target, "bytes", settings.max_uri),
        (Code::HeadersTooLarge, "the request has", headers.len(), "headers", settings.max_headers),
        (Code::HeadersTooLarge, "the headers have", size, "bytes", settings.max_head),
    ] {
        if actual > limit {
            return Err(ApiError::with_detail(
                code,
                format!("{subject} {actual} {unit}, the limit is {limit}"),
            ));
        }
    }
    // A request made in process needs no host.
    if request.extensions().get::<ClientAddress>().is_some() {
        check_host(request.version(), uri, headers)?;
    }
    check_headers(request.method(), headers)
}

/// Returns the time after which `request` is given up: longer than any operation takes that still makes progress.
fn max_duration(request: &Request, settings: &HttpSettings) -> Duration {
    let most = settings.max_body.max(settings.max_definition).max(settings.max_batch) as u64;
    let size = request.body().size_hint().exact().map_or(most, |size| size.min(most));
    let receiving =
        settings.body_timeout + Duration::from_secs(size / u64::from(settings.min_body_rate.max(1)));
    HANDLING_TIMEOUT + receiving
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Replaces an error that a handler returned by its problem document.
fn render_error(mut response: Response, request_id: &str, base: &str) -> Response {
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    let mut rendered = error.render(request_id, base).map(Body::from);
    if let Some(methods) = response.headers_mut().remove(ALLOW) {
        rendered.headers_mut().insert(ALLOW, methods);
    }
    rendered
}

/// Sets the headers that every response has.
pub(crate) fn set_common_headers(headers: &mut HeaderMap, request_id: &HeaderValue) {
    headers.insert(X_REQUEST_ID, request_id.clone());
    // Pages have their own.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(policy);
}
