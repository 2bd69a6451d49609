//! Content negotiation by `Accept` and `Accept-Encoding` (RFC 9110 §12.5).

use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, HeaderName};

use crate::api::{Code, PROBLEM_TYPE};
use crate::app::{ApiError, Result};

/// The media type of nearly all responses.
pub(crate) const JSON: &str = "application/json";

/// The media type of a JSON Schema.
pub(crate) const SCHEMA: &str = "application/schema+json";

/// The media type of lines of JSON.
pub(crate) const JSON_LINES: &str = "application/x-ndjson";

/// The media type of metrics.
pub(crate) const TEXT: &str = "text/plain";

/// The media type of an archive.
pub(crate) const TAR: &str = "application/x-tar";

/// Fails if `Accept` admits neither JSON, nor a problem document, nor one of the `others` that the operation sends.
pub(crate) fn check_accept(headers: &HeaderMap, others: &[&str]) -> Result<()> {
    let sent = [JSON, PROBLEM_TYPE];
    if sent.iter().chain(others).any(|media_type| accepts(headers, media_type)) {
        return Ok(());
    }
    let types = [&[JSON], others].concat().join("` or `");
    Err(ApiError::with_detail(Code::NotAcceptable, format!("`Accept` must admit `{types}`")))
}

/// Whether `Accept` admits `media_type`: the most specific matching range decides. Without the header, every type is admitted.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let matching = weighted(headers, ACCEPT)
        .filter_map(|(range, weight)| Some((match_specificity(range, media_type)?, weight)));
    let decisive = matching.max_by_key(|(specificity, _)| *specificity);
    !headers.contains_key(ACCEPT) || decisive.is_some_and(|(_, weight)| weight > 0.0)
}

/// Returns how specifically a media range matches `media_type`; `None` if it does not.
fn match_specificity(range: &str, media_type: &str) -> Option<u8> {
    let family = range.strip_suffix("/*").filter(|family| !family.is_empty());
    match family {
        _ if range.eq_ignore_ascii_case(media_type) => Some(2),
        Some("*") => Some(0),
        Some(family) if media_type.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(family)) => {
            Some(1)
        }
        _ => None,
    }
}

/// Whether `Accept-Encoding` prefers gzip to no encoding. No encoding is sent even if the client excludes that: an operation
/// already carried out is not refused afterwards.
pub(crate) fn prefers_gzip(headers: &HeaderMap) -> bool {
    let weight = |names: [&str; 2]| {
        let is_named = |coding: &str| names.iter().any(|name| coding.eq_ignore_ascii_case(name));
        weighted(headers, ACCEPT_ENCODING)
            .filter_map(|(coding, weight)| is_named(coding).then_some(weight))
            .fold(0.0, f32::max)
    };
    let gzip = weight(["gzip", "x-gzip"]);
    gzip > 0.0 && gzip >= weight(["identity", ""])
}

/// Returns the elements of the header `name` with their weights (RFC 9110 §12.4.2).
fn weighted(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = (&str, f32)> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|element| {
        let mut parts = element.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        (name, weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
    })
}
