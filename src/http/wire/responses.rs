//! Builders of the responses that several handlers return.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::app::ReplayableBody;
use crate::app::Result;

/// Serializes `body` as a JSON response.
pub(crate) fn json(body: &impl Serialize) -> Result<Response> {
    Ok(json_text(serde_json::to_string(body)?))
}

pub(crate) fn json_text(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    // Room for the common headers.
    response.headers_mut().reserve(8);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns metrics in the text format of Prometheus.
pub(crate) fn metrics_text(text: String) -> Response {
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    with_header(Response::new(text.into()), CONTENT_TYPE, content_type)
}

/// Adds the header `name`, if `value` is a valid header value.
pub(crate) fn with_header(
    mut response: Response,
    name: HeaderName,
    value: impl TryInto<HeaderValue>,
) -> Response {
    if let Ok(value) = value.try_into() {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Turns `response` into 201 with `Location`; `replayed` if an earlier attempt created the resource.
pub(crate) fn created_response(mut response: Response, location: String, replayed: bool) -> Response {
    *response.status_mut() = StatusCode::CREATED;
    with_replayed(with_header(response, LOCATION, location), replayed)
}

/// Adds `Idempotency-Replayed` if `replayed`: an earlier attempt was carried out.
pub(crate) fn with_replayed(response: Response, replayed: bool) -> Response {
    if !replayed {
        return response;
    }
    with_header(response, HeaderName::from_static("idempotency-replayed"), "true")
}

/// Returns the response to a request that may have been repeated.
pub(crate) fn replayable((body, replayed): ReplayableBody) -> Response {
    with_replayed(json_text(body), replayed)
}

/// Adds the link to the page that begins at `next`, of the list at `uri`: a cursor is valid only with the same filters.
/// `count` is left out: the first page has the total.
pub(crate) fn with_next_link(response: Response, uri: &Uri, limit: usize, next: Option<&str>) -> Response {
    let Some(cursor) = next else { return response };
    let sent = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let others = sent.filter(|(name, _)| !["limit", "cursor", "count"].contains(&&**name));
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(others).append_pair("limit", &limit.to_string()).append_pair("cursor", cursor);
    with_header(response, LINK, format!("<{}?{}>; rel=\"next\"", uri.path(), query.finish()))
}

/// Maximum size of the header `Forms-Dropped`, in bytes; it lists as many keys as fit.
const MAX_DROPPED_BYTES: usize = 1_000;

/// Maximum number of characters of a key that are listed.
const MAX_KEY_CHARS: usize = 80;

/// Characters to percent-encode, so that each key is an HTTP token (RFC 9110 §5.6.2).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Adds `Forms-Dropped` with the `keys` of the answers that were dropped.
pub(crate) fn with_dropped_keys(response: Response, keys: &[String]) -> Response {
    if keys.is_empty() {
        return response;
    }
    let mut list = String::new();
    for key in keys {
        let name: String = key.chars().take(MAX_KEY_CHARS).collect();
        let name = utf8_percent_encode(&name, ENCODED).to_string();
        if list.len() + 1 + name.len() > MAX_DROPPED_BYTES {
            break;
        }
        list.push_str(if list.is_empty() { "" } else { "," });
        list.push_str(&name);
    }
    with_header(response, HeaderName::from_static("forms-dropped"), list)
}
