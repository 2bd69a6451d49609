//! Reads request bodies, within limits of size and time.

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::api::Code;
use crate::app::{ApiError, Result};
use crate::config::HttpSettings;
use crate::http::server::budget::{Reservation, uncharged};

/// Time after which a body counts against its key's share of those that are received slowly.
const SLOW: Duration = Duration::from_secs(1);

/// Reads the body of `request`, of at most `limit` bytes. A large one is covered by `reservation` before it is received:
/// all of it if its length is announced, else as it grows. A slow one is given up if `slow` has no room.
pub(crate) async fn read_body(
    request: Request,
    limit: usize,
    settings: &HttpSettings,
    reservation: &mut Reservation,
    mut slow: Reservation,
) -> Result<Bytes> {
    let uncharged = uncharged(request.version());
    let mut body = request.into_body();
    let too_large =
        || ApiError::with_detail(Code::BodyTooLarge, format!("the body exceeds the limit of {limit} bytes"));
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large());
    }
    let mut cover = |bytes| {
        let is_covered = bytes <= uncharged || reservation.grow_to(bytes);
        if is_covered { Ok(()) } else { Err(ApiError::overloaded()) }
    };
    cover(announced)?;
    // Nearly all bodies arrive with their head and never start a timer.
    let begun = Instant::now();
    let mut next_check = Some(begun + SLOW);
    let mut whole = Vec::new();
    loop {
        let earned = Duration::from_secs(whole.len() as u64 / u64::from(settings.min_body_rate.max(1)));
        let deadline = begun + settings.body_timeout + earned;
        let Ok(frame) = timeout_at(next_check.unwrap_or(deadline).min(deadline), body.frame()).await else {
            if deadline <= Instant::now() {
                let detail = "the body did not arrive in time";
                return Err(ApiError::with_detail(Code::RequestTimeout, detail));
            }
            if !slow.grow_to(1) {
                return Err(ApiError::overloaded());
            }
            next_check = None;
            continue;
        };
        let Some(frame) = frame else { return Ok(whole.into()) };
        let chunk = frame.map_err(|error| incomplete_body(&error))?.into_data().unwrap_or_default();
        let length = whole.len() + chunk.len();
        if length > limit {
            return Err(too_large());
        }
        cover(length)?;
        if whole.is_empty() && body.is_end_stream() {
            return Ok(chunk);
        }
        if length > whole.capacity() {
            let capacity = announced.max(length.next_power_of_two().min(limit));
            cover(capacity)?;
            whole.reserve_exact(capacity - whole.len());
        }
        whole.extend_from_slice(&chunk);
    }
}

/// Returns the error for a client that closed the connection or broke the framing.
fn incomplete_body(error: &axum::Error) -> ApiError {
    tracing::debug!(%error, "a body is incomplete");
    ApiError::with_detail(
        Code::MalformedJson,
        "the body is incomplete, or its framing does not match its headers",
    )
}
