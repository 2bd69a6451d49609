//! Who sends a request: the proved key, before anything else of the request is looked at.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, AUTHORIZATION};
use axum::http::request::Parts;

use super::problem::Failure;
use super::{Peer, Shared};
use crate::api::Code;
use crate::app::AppError;
use crate::domain::workspace::Caller;

/// The caller, by the key in `Authorization: Bearer <key>`.
pub(super) struct Signed(pub(super) Caller);

impl FromRequestParts<Shared> for Signed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Failure> {
        let caller = authenticate(parts, shared).await?;
        accepts_json(&parts.headers)?;
        Ok(Self(caller))
    }
}

/// Missing and invalid keys are answered alike; too many invalid ones from an address are answered 429, which does
/// not stop valid ones.
async fn authenticate(parts: &Parts, shared: &Shared) -> Result<Caller, Failure> {
    let Some(text) = parts.headers.get(AUTHORIZATION) else {
        return Err(AppError::Unauthenticated.into());
    };
    let key = text.to_str().ok().and_then(bearer).unwrap_or_default();
    match shared.app.authenticate(key).await {
        Ok(caller) => Ok(caller),
        Err(AppError::Unauthenticated) => Err(refuse_key(parts, shared)),
        Err(other) => Err(other.into()),
    }
}

fn refuse_key(parts: &Parts, shared: &Shared) -> Failure {
    let peer = parts.extensions.get::<Peer>();
    let wait = match (&shared.auth_failures, peer) {
        (Some(failures), Some(Peer(address))) => failures.count(*address, shared.app.now()),
        _ => None,
    };
    match wait {
        Some(seconds) => Failure::because(
            Code::RateLimited,
            format!("too many keys from this address were not valid; wait {seconds} seconds"),
        )
        .retry_after(seconds),
        None => AppError::Unauthenticated.into(),
    }
}

/// The key in `Bearer <key>`; the scheme's name is case-insensitive (RFC 9110 §11.1).
fn bearer(text: &str) -> Option<&str> {
    let (scheme, key) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim_matches(' '))
}

/// Fails if `Accept` leaves no room for JSON.
fn accepts_json(headers: &HeaderMap) -> Result<(), Failure> {
    let mut ranges =
        headers.get_all(ACCEPT).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    if !headers.contains_key(ACCEPT) || ranges.any(admits_json) {
        return Ok(());
    }
    Err(Failure::because(Code::NotAcceptable, "`Accept` must admit `application/json`"))
}

/// Whether one media range of `Accept` admits JSON: `*/*`, `application/*` or `application/json`, with a weight above 0.
fn admits_json(range: &[u8]) -> bool {
    let Ok(range) = std::str::from_utf8(range) else { return false };
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let names_json =
        ["*/*", "application/*", "application/json"].iter().any(|known| name.eq_ignore_ascii_case(known));
    let refused = parts.any(|parameter| {
        let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
        weight.is_some_and(|weight| weight.parse::<f32>() == Ok(0.0))
    });
    names_json && !refused
}

#[cfg(test)]
mod tests {
    use super::{admits_json, bearer};

    #[test]
    fn the_bearer_scheme_has_a_key_after_one_space() {
        let cases = [
            ("Bearer fk_1", Some("fk_1")),
            ("bearer  fk_1 ", Some("fk_1")),
            ("Basic fk_1", None),
            ("Bearer", None),
            ("fk_1", None),
            ("", None),
        ];
        for (text, key) in cases {
            assert_eq!(bearer(text), key, "{text}");
        }
    }

    #[test]
    fn a_media_range_admits_json_unless_its_weight_is_nought() {
        let cases = [
            ("*/*", true),
            (" application/*;q=0.1", true),
            ("application/json; charset=utf-8", true),
            ("Application/JSON", true),
            ("application/json;q=0", false),
            ("application/json; q=0.000", false),
            ("application/xml", false),
            ("text/*", false),
            ("", false),
        ];
        for (range, admitted) in cases {
            assert_eq!(admits_json(range.as_bytes()), admitted, "{range}");
        }
    }
}
