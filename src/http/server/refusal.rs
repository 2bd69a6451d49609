//! Responses sent without a handler: to a head that did not arrive in time or without TLS, and when all connections are
//! taken.

use axum::body::Body;
use axum::http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderMap, HeaderValue, Request, Response};

use crate::api::Code;
use crate::config::HttpLimits;
use crate::http::server::base_url::base_url;
use crate::http::server::cors::Cors;
use crate::http::server::http_service::{is_from_proxy, set_common_headers};
use crate::http::server::request_id::RequestIds;
use crate::http::wire::problem::ApiError;

/// Returns the serialized response to a head that did not arrive in time. The connection must be closed after it.
pub(crate) fn head_timeout(limits: &HttpLimits, is_tls: bool) -> Vec<u8> {
    let error = ApiError::with_detail(Code::RequestTimeout, "the headers did not arrive in time");
    let mut response = document(error, &base_url(&HeaderMap::new(), false, limits));
    if is_tls {
        require_https(response.headers_mut());
    }
    serialize(response)
}

/// Returns the serialized response to HTTP without TLS on the port for HTTPS. The connection must be closed after it.
pub(crate) fn https_expected(limits: &HttpLimits) -> Vec<u8> {
    let detail = "this port serves HTTPS only; use https:// instead of http://";
    let base = base_url(&HeaderMap::new(), false, limits);
    serialize(document(ApiError::with_detail(Code::InvalidHeader, detail), &base))
}

/// Tells browsers to use only HTTPS for this host (RFC 6797). May be sent only over TLS.
pub(crate) fn require_https(headers: &mut HeaderMap) {
    headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
}

/// Serializes a response after which the connection is closed.
fn serialize(mut response: Response<Vec<u8>>) -> Vec<u8> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let mut bytes = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend([b"\r\n", response.body().as_slice()].concat());
    bytes
}

/// Returns the response for when all connections are taken.
pub(crate) fn overload_response(request: &Request<Body>, limits: &HttpLimits) -> Response<Body> {
    let headers = request.headers();
    let mut response =
        document(ApiError::overloaded(), &base_url(headers, is_from_proxy(request, limits), limits));
    Cors::of_request(request.method(), headers, &limits.cors_origins).add_headers(response.headers_mut());
    response.map(Body::from)
}

/// Renders `error` with the common headers, for a request whose URLs begin with `base`.
fn document(error: ApiError, base: &str) -> Response<Vec<u8>> {
    let id = RequestIds::new().next_id();
    let mut response = error.render(id.to_str().unwrap_or_default(), base);
    set_common_headers(response.headers_mut(), &id);
    response
}
