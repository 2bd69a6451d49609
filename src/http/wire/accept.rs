//! Content negotiation by `Accept` and `Accept-Encoding` (RFC 9110 §12.5).

use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, HeaderName};

use crate::api::{Code, PROBLEM_TYPE};
use crate::app::{ApiError, Result};

/// The media type of nearly all responses.
pub(crate) const JSON: &str = "application/json";

/// The media type of a JSON Schema.
pub(crate) const SCHEMA: &str = "application/schema+json";

/// The media type of JSON objects, one a line.
pub(crate) const JSON_LINES: &str = "application/x-ndjson";

/// The media type of a table.
pub(crate) const CSV: &str = "text/csv";

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

/// Whether `Accept` admits `media_type`.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    weight(headers, media_type) > 0.0
}

/// Returns the one of `others` that `Accept` prefers to JSON, and to those after it.
pub(crate) fn preferred(headers: &HeaderMap, others: &[&'static str]) -> Option<&'static str> {
    let weighed = |media_type: &&'static str| (weight(headers, media_type), Some(*media_type));
    let best = |best: (f32, _), other: (f32, _)| if other.0 > best.0 { other } else { best };
    others.iter().map(weighed).fold((weight(headers, JSON), None), best).1
}

/// Returns the weight of `media_type` in `Accept`: the most specific matching range decides. Without the header, every type has
/// the same.
fn weight(headers: &HeaderMap, media_type: &str) -> f32 {
    if !headers.contains_key(ACCEPT) {
        return 1.0;
    }
    let matching = weighted(headers, ACCEPT)
        .filter_map(|(range, weight)| Some((match_specificity(range, media_type)?, weight)));
    matching.max_by_key(|(specificity, _)| *specificity).map_or(0.0, |(_, weight)| weight)
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
