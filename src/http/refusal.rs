//! Answers to what never became a request: hyper hands on only what it could read.

use axum::http::HeaderValue;
use axum::http::header::CONNECTION;

use super::frame::put_headers;
use super::problem::Failure;
use super::request_id::RequestIds;
use crate::api::Code;

/// The answer to a head that did not arrive in time.
pub(super) fn head_timeout() -> Vec<u8> {
    last_answer(Failure::because(Code::RequestTimeout, "the headers did not arrive in time"))
}

/// The answer to a head that hyper could not read, in place of hyper's own `bare` one, which has no body.
pub(super) fn instead_of(bare: &[u8]) -> Vec<u8> {
    last_answer(match bare.get(9..12) {
        Some(b"414") => Failure::because(Code::UriTooLong, "the address is too long"),
        Some(b"431") => Failure::because(Code::HeadersTooLarge, "the headers are too many or too large"),
        _ => Failure::because(Code::InvalidHeader, "the request line and the headers are no HTTP/1.1"),
    })
}

/// `failure` as the bytes of an answer after which the connection is closed.
fn last_answer(failure: Failure) -> Vec<u8> {
    let id = RequestIds::new().draw();
    let mut response = failure.document(id.to_str().unwrap_or_default());
    let headers = response.headers_mut();
    put_headers(headers, &id);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut bytes = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend([b"\r\n", response.body().as_slice()].concat());
    bytes
}
