//! Response bodies: large ones are charged to the caller's key until they are sent, and compressed on the pool.

use std::io::{self, Write};

use axum::body::{Body, HttpBody};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;

use crate::app::{ApiError, Result};
use crate::cpu_pool::CpuPool;
use crate::http::server::budget::{BudgetOwner, Budgets, Reservation, SMALL};

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

/// Compresses `response` if the client prefers that, and charges it to `owner` if it has more than `uncharged` bytes. Fails if
/// the budget has no room, except after an unsafe `method`, which may have changed something: such operations start only
/// while there is some room.
pub(crate) async fn prepare_response(
    response: Response,
    method: &Method,
    prefers_gzip: bool,
    budgets: &Budgets,
    owner: BudgetOwner,
    uncharged: usize,
) -> Result<Response> {
    let Some(size) = response.body().size_hint().exact().map(|size| size as usize) else {
        return Ok(response);
    };
    let is_compressed = prefers_gzip && size >= MIN_COMPRESSED_SIZE;
    if size <= uncharged && !is_compressed {
        return Ok(response);
    }
    let charged = |size: usize| if size <= uncharged { 0 } else { size };
    let reservation = match method.is_safe() {
        true => budgets.responses.reserve(owner, charged(size)).ok_or_else(ApiError::overloaded)?,
        false => budgets.responses.charge(owner, charged(size)),
    };
    let (mut parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let mut bytes = Bytes::from_owner(ChargedBytes { bytes, _reservation: reservation });
    let level = compression_level(&parts.headers);
    if is_compressed && let Some(compressed) = compress(&bytes, level, &budgets.pool).await {
        let reservation = budgets.responses.charge(owner, charged(compressed.len()));
        bytes = Bytes::from_owner(ChargedBytes { bytes: compressed.into(), _reservation: reservation });
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        parts.headers.append(VARY, HeaderValue::from(ACCEPT_ENCODING));
    }
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Compresses `bytes`; large bodies on the pool, so that small requests do not wait. Returns `None` if that fails or gains
/// nothing: the body is then sent uncompressed.
async fn compress(bytes: &Bytes, level: Compression, pool: &CpuPool) -> Option<Vec<u8>> {
    let compressed = if bytes.len() <= SMALL {
        gzip(bytes, level)
    } else {
        let bytes = bytes.clone();
        pool.run(move || gzip(&bytes, level)).await.ok()?
    };
    compressed.ok().filter(|compressed| compressed.len() < bytes.len())
}

/// For most responses, higher levels cost several times as much and gain little. Pages go to telephones on slow lines, and a
/// fifth is gained.
fn compression_level(headers: &HeaderMap) -> Compression {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_page = kind.starts_with(b"text/html") || kind.starts_with(b"text/javascript");
    if is_page { Compression::new(4) } else { Compression::fast() }
}

fn gzip(bytes: &[u8], level: Compression) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}
