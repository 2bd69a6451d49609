//! Checks of a request head against request smuggling: a proxy must not have read it differently.

use axum::http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HOST, HeaderName, IF_MATCH, TRANSFER_ENCODING,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, Version};

use crate::api::Code;
use crate::app::{ApiError, Result};
use crate::http::wire::extract::IDEMPOTENCY_KEY;

/// Headers with a single value. Of two lines, a proxy may have used the one that is ignored here.
const SINGLE: [HeaderName; 8] = [
    HOST,
    AUTHORIZATION,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    TRANSFER_ENCODING,
    EXPECT,
    IF_MATCH,
    IDEMPOTENCY_KEY,
];

/// Refuses duplicate headers, transfer codings other than `chunked`, and conditions that are not evaluated.
pub(crate) fn check_headers(method: &Method, headers: &HeaderMap) -> Result<()> {
    check_single(headers)?;
    if headers.get(TRANSFER_ENCODING).is_some_and(|coding| !is(coding, "chunked")) {
        return Err(invalid("`Transfer-Encoding` must be `chunked`"));
    }
    if headers.contains_key(IF_MATCH) && !matches!(*method, Method::PATCH | Method::DELETE) {
        return Err(invalid(format!("`If-Match` has no effect on {method}; send the request without it")));
    }
    match headers.get(EXPECT) {
        Some(value) if !is(value, "100-continue") => {
            Err(ApiError::with_detail(Code::ExpectationFailed, "`Expect` must be `100-continue`"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_single(headers: &HeaderMap) -> Result<()> {
    // Fast path: as many names as lines.
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    match SINGLE.iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
        Some(name) => Err(invalid(format!("header `{name}` given more than once"))),
        None => Ok(()),
    }
}

/// Refuses a request with an invalid `Host`, and one without it over HTTP/1.1 (RFC 9112 §3.2). Over HTTP/2 `:authority` takes
/// its place; if both are sent, they must be equal (RFC 9113 §8.3.1).
pub(crate) fn check_host(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<()> {
    let authority = uri.authority().filter(|_| version == Version::HTTP_2).map(Authority::as_str);
    let good = match (headers.get(HOST).map(HeaderValue::to_str), authority) {
        (Some(Ok(host)), Some(authority)) => is_host(host) && host.eq_ignore_ascii_case(authority),
        (Some(Ok(host)), None) | (None, Some(host)) => is_host(host),
        (Some(Err(_)), _) => false,
        (None, None) => version < Version::HTTP_11,
    };
    let detail = "the header `Host` must be a host, optionally with a port";
    if good { Ok(()) } else { Err(invalid(detail)) }
}

/// Whether `text` is a host name or an IP address, optionally with a port.
pub(crate) fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, port),
        Some(_) | None => (text, ""),
    };
    let is_port = port.is_empty() || !port.starts_with('+') && port.parse::<u16>().is_ok();
    let is_named = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_in_names),
    };
    is_named && is_port
}

/// Whether a registered name may contain `byte` (RFC 3986 §3.2.2).
fn is_in_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

fn is(value: &HeaderValue, word: &str) -> bool {
    value.as_bytes().eq_ignore_ascii_case(word.as_bytes())
}

fn invalid(detail: impl Into<String>) -> ApiError {
    ApiError::with_detail(Code::InvalidHeader, detail)
}
