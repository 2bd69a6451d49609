//! `ETag` and `If-Match`: conditional requests by the revision of a form or a submission, `"r7"`.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::response::Response;

use crate::api::Code;
use crate::app::{ApiError, Result};
use crate::domain::revision::ExpectedRevision;
use crate::http::wire::responses::with_header;
use crate::http::wire::state::Shared;

/// Adds the `ETag` of `revision` to `response`.
pub(crate) fn with_etag(response: Response, revision: u64) -> Response {
    with_header(response, ETAG, format!("\"r{revision}\""))
}

/// Extractor for the revisions in `If-Match`; any revision if the header is absent.
pub(crate) struct IfMatch(pub(crate) ExpectedRevision);

impl FromRequestParts<Shared> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self> {
        let Some(value) = parts.headers.get(IF_MATCH) else { return Ok(Self(ExpectedRevision::Any)) };
        let expected = value.to_str().ok().and_then(parse_if_match);
        let detail = "`If-Match` must be `*` or a list of entity tags, such as `\"r7\"`";
        expected.map(Self).ok_or_else(|| ApiError::with_detail(Code::InvalidHeader, detail))
    }
}

/// Parses `*` or a list of entity tags (RFC 9110 §13.1.1). Foreign tags match no revision.
fn parse_if_match(text: &str) -> Option<ExpectedRevision> {
    if text.trim() == "*" {
        return Some(ExpectedRevision::Any);
    }
    let (mut rest, mut revisions) = (text, Vec::new());
    loop {
        // Empty elements are ignored (§5.6.1.2).
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(ExpectedRevision::OneOf(revisions));
        }
        let (revision, after) = entity_tag(rest)?;
        revisions.extend(revision);
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
}

/// Parses the entity tag at the start of `text`: its revision, if the tag is ours, and the rest of `text`. Returns `None` if
/// `text` does not start with an entity tag.
///
/// Weak tags match too, unlike in RFC 9110: a proxy that compresses weakens our tags, and the client sees no others.
fn entity_tag(text: &str) -> Option<(Option<u64>, &str)> {
    let quoted = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?;
    let (opaque, rest) = quoted.split_once('"').filter(|(opaque, _)| !opaque.contains([' ', '\t']))?;
    let digits = opaque.strip_prefix('r').filter(|digits| !digits.starts_with(['0', '+']));
    Some((digits.and_then(|digits| digits.parse().ok()), rest))
}
