//! The base URL of a request: what precedes the path in the URLs of its response.

use axum::http::header::{LINK, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::HttpSettings;
use crate::http::server::request_head::is_host;

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Maximum length of `X-Forwarded-Prefix`, in bytes.
const MAX_PREFIX: usize = 200;

/// Request extension: the base URL of the request, unless it is empty.
#[derive(Debug, Clone)]
pub(crate) struct RequestBase(pub(crate) String);

/// Returns the base URL of a request with these headers: the configured one, else what a trusted proxy reports, an absolute
/// URL or only a path; else nothing, so that URLs begin with the path. Invalid headers are ignored.
pub(crate) fn base_url(headers: &HeaderMap, is_from_proxy: bool, settings: &HttpSettings) -> String {
    if let Some(base) = &settings.base_url {
        return base.as_str().to_owned();
    }
    if !is_from_proxy {
        return String::new();
    }
    let prefix = last_element(headers, &X_FORWARDED_PREFIX).filter(|prefix| is_prefix(prefix));
    let prefix = prefix.unwrap_or_default().trim_end_matches('/');
    match last_element(headers, &X_FORWARDED_HOST).filter(|host| is_host(host)) {
        Some(host) => {
            let scheme = last_element(headers, &X_FORWARDED_PROTO).unwrap_or_default();
            let scheme = if scheme.eq_ignore_ascii_case("https") { "https" } else { "http" };
            format!("{scheme}://{host}{prefix}")
        }
        None => prefix.to_owned(),
    }
}

/// Returns the last element of the list in the header `name`: the nearest proxy wrote it, clients may have written the others.
fn last_element<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    line.rsplit(',').next().map(str::trim)
}

/// Whether `text` is an absolute path without a host (RFC 3986 §3.3) that is not too long.
fn is_prefix(text: &str) -> bool {
    let is_path_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:@/".contains(&byte);
    let is_rooted = text.starts_with('/') && !text.starts_with("//");
    is_rooted && text.len() <= MAX_PREFIX && text.bytes().all(is_path_byte)
}

/// Puts `base` before the paths in `Location` and `Link`.
pub(crate) fn add_base(headers: &mut HeaderMap, base: &str) {
    for (name, begin) in [(LOCATION, "/"), (LINK, "</")] {
        let Some(path) = headers.get(&name).and_then(|value| value.to_str().ok()?.strip_prefix(begin)) else {
            continue;
        };
        let value = format!("{}{base}/{path}", begin.trim_end_matches('/'));
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}
