//! Response bodies: large ones are charged to the caller's key until they are sent, and compressed on the pool.

use axum::body::{Body, HttpBody};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;

use crate::http::server::byte_budget::{BudgetOwner, Budgets, Reservation, SMALL};
use crate::http::wire::compression::Encoding;
use crate::http::wire::problem::ApiError;

/// Size below which compression gains nothing, in bytes.
const MIN_COMPRESSED_SIZE: usize = 1_024;

/// Bytes with their reservation, which lasts until the last slice of them is dropped: hyper's queue holds some, too.
struct ChargedBytes {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Compresses `response` and charges it to `owner` if it has more than `uncharged` bytes. Fails if the budget has no room, except after an unsafe
/// `method`, which may have changed something: such operations start only while there is some room.
pub(crate) async fn prepare_response(
    response: Response,
    method: &Method,
    encoding: Option<Encoding>,
    budgets: &Budgets,
    owner: BudgetOwner,
    uncharged: usize,
) -> Result<Response, ApiError> {
    let Some(size) = response.body().size_hint().exact().map(|size| size as usize) else {
        return Ok(response);
    };
    let encoding = encoding.filter(|_| size >= MIN_COMPRESSED_SIZE);
    if size <= uncharged && encoding.is_none() {
        return Ok(response);
    }
    let reservation = match method.is_safe() {
        true => {
            budgets.responses.reserve(owner, charged(size, uncharged)).ok_or_else(ApiError::overloaded)?
        }
        false => budgets.responses.charge(owner, charged(size, uncharged)),
    };
    let (mut parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let mut bytes = Bytes::from_owner(ChargedBytes { bytes, _reservation: reservation });
    if let Some(encoding) = encoding
        && let Some(compressed) = compress(&bytes, encoding, budgets, owner, uncharged).await
    {
        bytes = compressed;
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        parts.headers.append(VARY, HeaderValue::from(ACCEPT_ENCODING));
    }
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Compresses `bytes` and charges the smaller result to `owner`. Large bodies are compressed on the pool, so that small
/// requests do not wait. Returns `None` if that fails or gains nothing: the body is then sent uncompressed.
async fn compress(
    bytes: &Bytes,
    encoding: Encoding,
    budgets: &Budgets,
    owner: BudgetOwner,
    uncharged: usize,
) -> Option<Bytes> {
    let compressed = if bytes.len() <= SMALL {
        encoding.compress(bytes).ok()?
    } else {
        let bytes = bytes.clone();
        budgets.pool.run(move || encoding.compress(&bytes)).await.ok()?.ok()?
    };
    if compressed.len() >= bytes.len() {
        return None;
    }
    let reservation = budgets.responses.charge(owner, charged(compressed.len(), uncharged));
    Some(Bytes::from_owner(ChargedBytes { bytes: compressed.into(), _reservation: reservation }))
}

/// Returns the bytes to reserve for a body of `size` bytes.
fn charged(size: usize, uncharged: usize) -> usize {
    if size <= uncharged { 0 } else { size }
}
