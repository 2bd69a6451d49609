//! Request ids, which link a log line to its response.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Returns the client's own request id if it is safe to log as it is, else a random one: 16 hexadecimal digits.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let sent = headers.get(X_REQUEST_ID).filter(|id| (1..=64).contains(&id.len()));
    sent.filter(|id| id.as_bytes().iter().all(is_plain)).cloned().unwrap_or_else(|| {
        let id = format!("{:016x}", fastrand::u64(..));
        HeaderValue::try_from(id).expect("hexadecimal digits are valid in a header")
    })
}
