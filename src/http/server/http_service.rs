//! What surrounds every request: its id, bounds on its head, the headers every answer bears, the access log.
//!
//! One plain function around the router instead of layers within it, which box and copy for each request: this is on
//! the way of every submission.

use std::any::Any;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tower::Service;

use crate::api::Code;
use crate::config::HttpLimits;
use crate::http::server::byte_budget::{Budgets, ProvedKey};
use crate::http::server::request_head::{check_headers, check_host};
use crate::http::server::request_id::RequestIds;
use crate::http::server::response_body::ready_to_send;
use crate::http::wire::compression::Encoding;
use crate::http::wire::problem::Failure;
use crate::http::wire::state::Peer;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Routes within the frame of every request. Cheap to clone.
#[derive(Clone)]
pub struct Framed {
    routes: Router,
    limits: Arc<HttpLimits>,
    budgets: Arc<Budgets>,
    ids: Arc<RequestIds>,
}

impl Framed {
    pub(crate) fn new(routes: Router, limits: Arc<HttpLimits>, budgets: Arc<Budgets>) -> Self {
        Self { routes, limits, budgets, ids: Arc::new(RequestIds::new()) }
    }

    /// The same as a router, for those who know no other kind.
    pub fn into_router(self) -> Router {
        Router::new().fallback_service(self)
    }

    /// Leads one request through the routes.
    async fn answer(mut self, mut request: Request) -> Response {
        let begun = Instant::now();
        let id = request_id(request.headers()).unwrap_or_else(|| self.ids.draw());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let encoding = request.headers().get(ACCEPT_ENCODING).and_then(Encoding::preferred);
        let proved_key = ProvedKey::default();
        request.extensions_mut().insert(proved_key.clone());
        let response = match check_head(&request, &self.limits) {
            Ok(()) => catch_panic(self.routes.call(request)).await,
            Err(failure) => failure.into_response(),
        };
        let text = id.to_str().unwrap_or_default();
        let mut response = finish(response, text);
        if method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        let ready = ready_to_send(response, &method, encoding, &self.budgets, proved_key.owner()).await;
        let mut response = ready.unwrap_or_else(|failure| failure.render(text));
        put_headers(response.headers_mut(), &id);
        log_access(&method, uri.path(), response.status(), begun.elapsed(), text);
        response
    }
}

impl Service<Request> for Framed {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let framed = self.clone();
        Box::pin(async move { Ok(framed.answer(request).await) })
    }
}

/// Writes the access log: what failed as `info`, the rest, which is nearly all, as `debug`. Formatting and writing a
/// line costs as much as storing a submission does, so requests that meet overload are not logged at `info` either.
fn log_access(method: &Method, path: &str, status: StatusCode, took: Duration, request_id: &str) {
    let is_routine = status.as_u16() < 400 || status == StatusCode::SERVICE_UNAVAILABLE;
    let status = status.as_u16();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if is_routine {
        tracing::debug!(target: "forms::access", %method, path, status, micros, request_id);
    } else {
        tracing::info!(target: "forms::access", %method, path, status, micros, request_id);
    }
}

/// The client's own id for the request, if it may stand in logs as it is.
fn request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let id = headers.get(X_REQUEST_ID)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ((1..=64).contains(&id.len()) && id.as_bytes().iter().all(is_plain)).then(|| id.clone())
}

/// Holds the head of `request` against the limits. hyper's own bounds lie above these.
fn check_head(request: &Request, limits: &HttpLimits) -> Result<(), Failure> {
    let uri = request.uri();
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let target = authority + uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > limits.max_uri {
        let detail = format!("the address has {target} bytes, {} are allowed", limits.max_uri);
        return Err(Failure::because(Code::UriTooLong, detail));
    }
    let headers = request.headers();
    if headers.len() > limits.max_headers {
        let detail = format!("{} headers are too many, {} are allowed", headers.len(), limits.max_headers);
        return Err(Failure::because(Code::HeadersTooLarge, detail));
    }
    // Every line has a colon, a space and a line end besides its name and value.
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > limits.max_head {
        let detail = format!("the headers have {size} bytes, {} are allowed", limits.max_head);
        return Err(Failure::because(Code::HeadersTooLarge, detail));
    }
    // A request that came over no network needs no host.
    if request.extensions().get::<Peer>().is_some() {
        check_host(request.version(), headers)?;
    }
    check_headers(request.method(), headers)
}

/// The answer of `work`, or that of a failure if it panics.
async fn catch_panic(work: impl Future<Output = Result<Response, Infallible>>) -> Response {
    let mut work = pin!(work);
    std::future::poll_fn(move |context| {
        // A request that panicked is not polled again, and what it shares with others is behind locks that
        // are taken over when poisoned.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(|Ok(response)| response),
            Err(payload) => Poll::Ready(Failure::panicked(panic_text(&*payload)).into_response()),
        }
    })
    .await
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Gives every failure its problem document, also those that the framework found.
fn finish(mut response: Response, request_id: &str) -> Response {
    let failure = match response.extensions_mut().remove::<Failure>() {
        Some(failure) => failure,
        None if is_bare_error(&response) => bare_error(response.status()),
        None => return response,
    };
    let mut rendered = failure.render(request_id);
    if let Some(methods) = response.headers_mut().remove(ALLOW) {
        rendered.headers_mut().insert(ALLOW, methods);
    }
    rendered
}

/// Whether the framework made this answer: ours are JSON, or a [`Failure`].
fn is_bare_error(response: &Response) -> bool {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    is_error && response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json")
}

fn bare_error(status: StatusCode) -> Failure {
    Failure::new(match status {
        StatusCode::NOT_FOUND => Code::RouteNotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        _ => Code::Internal,
    })
}

/// Puts what every answer bears into `headers`.
pub(crate) fn put_headers(headers: &mut HeaderMap, request_id: &HeaderValue) {
    headers.insert(X_REQUEST_ID, request_id.clone());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    );
}
