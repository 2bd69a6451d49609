//! Shapes of answers that several handlers give.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::http::wire::problem::Failure;

/// `body` as JSON.
pub(crate) fn json(body: &impl Serialize) -> Result<Response, Failure> {
    Ok(written(serde_json::to_string(body)?))
}

/// `text`, which is JSON.
pub(crate) fn written(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    // With room for those that every answer bears.
    response.headers_mut().reserve(8);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// `response` with the header `name`, if `value` can be the value of one.
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

/// `response` as 201, and where to find what was made; `replayed` if an earlier attempt had made it.
pub(crate) fn created(mut response: Response, location: String, replayed: bool) -> Response {
    *response.status_mut() = StatusCode::CREATED;
    self::replayed(with_header(response, LOCATION, location), replayed)
}

/// `response`, which tells whether an earlier attempt had done it.
pub(crate) fn replayed(response: Response, replayed: bool) -> Response {
    if !replayed {
        return response;
    }
    with_header(response, HeaderName::from_static("idempotency-replayed"), "true")
}

/// `response`, a page of the list at `uri`, with a link to the one that begins at `next`.
pub(crate) fn page(response: Response, uri: &Uri, limit: usize, next: Option<&str>) -> Response {
    let Some(cursor) = next else { return response };
    let link = format!("<{}?{}>; rel=\"next\"", uri.path(), query_of(uri, limit, cursor));
    with_header(response, LINK, link)
}

/// The query of `uri` with another cursor: a cursor serves the list that it was given for. What was counted for the first
/// page need not be counted again.
fn query_of(uri: &Uri, limit: usize, cursor: &str) -> String {
    let sent = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let others = sent.filter(|(name, _)| !["limit", "cursor", "count"].contains(&&**name));
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(others).append_pair("limit", &limit.to_string()).append_pair("cursor", cursor);
    query.finish()
}

/// `response`, a page of a list of `total` items, if those were counted.
pub(crate) fn counted(response: Response, total: Option<u64>) -> Response {
    let Some(total) = total else { return response };
    with_header(response, HeaderName::from_static("forms-total"), total)
}

/// Bytes that the header with the keys that were left out has at most: as many keys as fit.
const DROPPED_BYTES: usize = 1_000;

/// Characters of a key that are named.
const KEY_CHARS: usize = 80;

/// Characters to percent-encode: those that a token of HTTP (RFC 9110 §5.6.2) may not have, and `%` itself.
const NO_TOKEN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// `response`, which tells the `keys` of the answers that were left out.
pub(crate) fn dropped(response: Response, keys: &[String]) -> Response {
    if keys.is_empty() {
        return response;
    }
    let mut list = String::new();
    for key in keys {
        let name: String = key.chars().take(KEY_CHARS).collect();
        let name = utf8_percent_encode(&name, NO_TOKEN).to_string();
        if list.len() + 1 + name.len() > DROPPED_BYTES {
            break;
        }
        list.push_str(if list.is_empty() { "" } else { "," });
        list.push_str(&name);
    }
    with_header(response, HeaderName::from_static("forms-dropped"), list)
}
