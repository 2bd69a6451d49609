//! Answers on their way out: large ones are charged to the key that asked, until the client has taken them, and
//! compressed where nobody waits.

use axum::body::{Body, HttpBody};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;

use crate::http::server::byte_budget::{BudgetOwner, Budgets, Reservation, SMALL};
use crate::http::wire::compression::Encoding;
use crate::http::wire::problem::Failure;

/// Below this compression makes nothing better, in bytes.
const WORTH_COMPRESSING: usize = 1_024;

/// Bytes and the reservation that covers them until the last slice of them is dropped: hyper's queue holds some, too.
struct Charged {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// `response` to a `method`, charged to `owner` if it is large, and compressed. Without room it is refused, unless the
/// operation has changed something: such operations begin only while there is some room.
pub(crate) async fn ready_to_send(
    response: Response,
    method: &Method,
    encoding: Option<Encoding>,
    budgets: &Budgets,
    owner: BudgetOwner,
) -> Result<Response, Failure> {
    let Some(size) = response.body().size_hint().exact().map(|size| size as usize) else {
        return Ok(response);
    };
    let encoding = encoding.filter(|_| size >= WORTH_COMPRESSING);
    if size <= SMALL && encoding.is_none() {
        return Ok(response);
    }
    let reservation = match method.is_safe() {
        _ if size <= SMALL => budgets.answers.reservation(owner),
        true => budgets.answers.reserve(owner, size).ok_or_else(Failure::overloaded)?,
        false => budgets.answers.charge(owner, size),
    };
    let (mut parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let mut bytes = Bytes::from_owner(Charged { bytes, _reservation: reservation });
    if let Some(encoding) = encoding
        && let Some(compressed) = compress(&bytes, encoding, budgets, owner).await
    {
        bytes = compressed;
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        parts.headers.append(VARY, HeaderValue::from(ACCEPT_ENCODING));
    }
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// `bytes` in that `encoding`, charged anew, since there are fewer of them. Large ones are compressed on the pool, so that
/// those who ask for little do not wait; `None` if that cannot be, or gains nothing: what was done is sent as it is.
async fn compress(bytes: &Bytes, encoding: Encoding, budgets: &Budgets, owner: BudgetOwner) -> Option<Bytes> {
    let compressed = if bytes.len() <= SMALL {
        encoding.compress(bytes).ok()?
    } else {
        let bytes = bytes.clone();
        budgets.pool.run(move || encoding.compress(&bytes)).await.ok()?.ok()?
    };
    if compressed.len() >= bytes.len() {
        return None;
    }
    let reservation = match compressed.len() {
        ..=SMALL => budgets.answers.reservation(owner),
        size => budgets.answers.charge(owner, size),
    };
    Some(Bytes::from_owner(Charged { bytes: compressed.into(), _reservation: reservation }))
}
