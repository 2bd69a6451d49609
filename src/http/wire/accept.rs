//! Content negotiation by `Accept` (RFC 9110 §12.5.1).

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use crate::api::{Code, PROBLEM_TYPE};
use crate::http::wire::problem::ApiError;

/// The media type of nearly all responses.
pub(crate) const JSON: &str = "application/json";

/// The media type of a JSON Schema.
pub(crate) const SCHEMA: &str = "application/schema+json";

/// Fails if `Accept` admits neither JSON, nor a problem document, nor one of the `others` that the operation sends.
pub(crate) fn check_accept(headers: &HeaderMap, others: &[&str]) -> Result<(), ApiError> {
    let sent = [JSON, PROBLEM_TYPE];
    if sent.iter().chain(others).any(|media_type| accepts(headers, media_type)) {
        return Ok(());
    }
    let types = [&[JSON], others].concat().join("` or `");
    Err(ApiError::with_detail(Code::NotAcceptable, format!("`Accept` must admit `{types}`")))
}

/// Whether `Accept` admits `media_type`: the most specific matching range decides. Without the header, every type is admitted.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    if !headers.contains_key(ACCEPT) {
        return true;
    }
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).filter_map(|range| match_range(range, media_type));
    ranges.max_by_key(|(specificity, _)| *specificity).is_some_and(|(_, admitted)| admitted)
}

/// Returns how specific a media range is, and whether its weight is above 0; `None` if it does not match `media_type`.
fn match_range(range: &str, media_type: &str) -> Option<(u8, bool)> {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let family = name.strip_suffix("/*").filter(|family| !family.is_empty());
    let specificity = match family {
        _ if name.eq_ignore_ascii_case(media_type) => 2,
        Some("*") => 0,
        Some(family) if media_type.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(family)) => 1,
        _ => return None,
    };
    let is_excluded = parts.any(|parameter| {
        let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
        weight.is_some_and(|weight| weight.parse::<f32>() == Ok(0.0))
    });
    Some((specificity, !is_excluded))
}
