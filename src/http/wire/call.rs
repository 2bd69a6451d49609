//! What every operation takes from its request. The API key is checked before anything else is parsed.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::api::Code;
use crate::app::{ApiError, Result, Session};
use crate::domain::workspace::Caller;
use crate::http::server::budget::AuthenticatedKey;
use crate::http::server::client_address::client_network;
use crate::http::wire::accept::{CSV, JSON_LINES, SCHEMA, TAR, TEXT, check_accept};
use crate::http::wire::extract::PathParams;
use crate::http::wire::query::{FromQuery, NoParams, QueryParams};
use crate::http::wire::state::{ClientAddress, LocalOperator, Shared};
use crate::secret::KeyId;

/// Extractor for a request of an operation: the session of the caller, from `Authorization: Bearer <key>`, the parameters of the path and of
/// the query. Also checks `Accept` for what the operation `S` sends.
pub(crate) struct Call<P = (), Q = NoParams, S = SendsJson> {
    pub(crate) session: Session,
    pub(crate) shared: Shared,
    pub(crate) path: P,
    pub(crate) query: Q,
    pub(crate) sends: PhantomData<S>,
}

/// Media types that an operation sends besides JSON.
pub(crate) trait Sends {
    const OTHERS: &'static [&'static str];
}

/// An operation that sends JSON only.
pub(crate) struct SendsJson;

impl Sends for SendsJson {
    const OTHERS: &'static [&'static str] = &[];
}

pub(crate) struct SendsSchema;

impl Sends for SendsSchema {
    const OTHERS: &'static [&'static str] = &[SCHEMA];
}

/// An operation that sends a list as a whole, too.
pub(crate) struct SendsExport;

impl Sends for SendsExport {
    const OTHERS: &'static [&'static str] = &[JSON_LINES, CSV];
}

pub(crate) struct SendsText;

impl Sends for SendsText {
    const OTHERS: &'static [&'static str] = &[TEXT];
}

pub(crate) struct SendsTar;

impl Sends for SendsTar {
    const OTHERS: &'static [&'static str] = &[TAR];
}

impl<P, Q, S> FromRequestParts<Shared> for Call<P, Q, S>
where
    P: DeserializeOwned + Send,
    Q: FromQuery,
    S: Sends,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self> {
        let caller = authenticate(parts, shared).await?;
        check_accept(&parts.headers, S::OTHERS)?;
        let PathParams(path) = PathParams::from_request_parts(parts, shared).await?;
        let QueryParams(query) = QueryParams::from_request_parts(parts, shared).await?;
        let session = Session { app: Arc::clone(&shared.app), caller };
        Ok(Self { session, shared: Arc::clone(shared), path, query, sends: PhantomData })
    }
}

/// Authenticates the caller. Missing and invalid keys get the same response; too many invalid ones from an address get
/// 429, which does not affect valid ones. A valid key gets 429 beyond its own rate limit. A request without a key may be
/// the [`LocalOperator`]'s.
async fn authenticate(parts: &Parts, shared: &Shared) -> Result<Caller> {
    let Some(text) = parts.headers.get(AUTHORIZATION) else {
        let local = parts.extensions.get::<LocalOperator>();
        return local.map(|local| local.0.clone()).ok_or_else(|| ApiError::new(Code::Unauthorized));
    };
    let key = text.to_str().ok().and_then(bearer).unwrap_or_default();
    match shared.app.authenticate(key).await {
        Ok(caller) => {
            if let Some(key) = parts.extensions.get::<AuthenticatedKey>() {
                key.set(caller.id);
            }
            check_rate(caller.id, shared)?;
            Ok(caller)
        }
        Err(error) => {
            if error.problem.code == Code::Unauthorized {
                count_failure(parts, shared)?;
            }
            Err(error)
        }
    }
}

/// Counts a request of `key`; fails beyond the rate limit.
fn check_rate(key: KeyId, shared: &Shared) -> Result<()> {
    let Some(requests) = &shared.requests else { return Ok(()) };
    requests.try_acquire(key, shared.app.now()).map_err(|seconds| {
        let rate = requests.rate;
        rate_limited(&format!("this API key has reached its rate limit of {rate}"), seconds)
    })
}

/// Counts an invalid key from the client's network; fails beyond the limit.
fn count_failure(parts: &Parts, shared: &Shared) -> Result<()> {
    let address = parts.extensions.get::<ClientAddress>();
    let (Some(failures), Some(ClientAddress(address))) = (&shared.auth_failures, address) else {
        return Ok(());
    };
    let counted = failures.try_acquire(client_network(*address), shared.app.now());
    counted.map_err(|seconds| rate_limited("too many invalid API keys from this address", seconds))
}

fn rate_limited(reason: &str, seconds: u64) -> ApiError {
    let unit = if seconds == 1 { "second" } else { "seconds" };
    let detail = format!("{reason}; wait {seconds} {unit}");
    ApiError::with_detail(Code::RateLimited, detail).retry_after(seconds)
}

/// Returns the key in `Bearer <key>`; the scheme is case-insensitive (RFC 9110 §11.1).
fn bearer(text: &str) -> Option<&str> {
    let (scheme, key) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim_matches(' '))
}
