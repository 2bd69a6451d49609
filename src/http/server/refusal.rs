//! Answers that no handler gives: to a head that did not arrive, and where all connections are taken.

use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Response};

use crate::api::Code;
use crate::http::server::http_service::put_headers;
use crate::http::server::request_id::RequestIds;
use crate::http::wire::problem::Failure;

/// The answer to a head that did not arrive in time, in bytes. The connection is to be closed after it.
pub(crate) fn head_timeout() -> Vec<u8> {
    let failure = Failure::because(Code::RequestTimeout, "the headers did not arrive in time");
    let mut response = document(failure);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let mut bytes = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend([b"\r\n", response.body().as_slice()].concat());
    bytes
}

/// The answer where all connections are taken.
pub(crate) fn connections_exhausted() -> Response<Body> {
    document(Failure::overloaded()).map(Body::from)
}

/// `failure` with the headers of every answer.
fn document(failure: Failure) -> Response<Vec<u8>> {
    let id = RequestIds::new().draw();
    let mut response = failure.document(id.to_str().unwrap_or_default());
    put_headers(response.headers_mut(), &id);
    response
}
