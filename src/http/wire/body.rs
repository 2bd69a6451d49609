//! Reads request bodies, within limits of size and time.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::api::Code;
use crate::config::HttpLimits;
use crate::http::server::byte_budget::{Reservation, SMALL};
use crate::http::wire::problem::Failure;

/// Reads the body of `request`, of at most `limit` bytes. A large one is covered by `reservation` before it is received:
/// all of it if its length is announced, else as it grows.
pub(crate) async fn read_body(
    request: Request,
    limit: usize,
    limits: &HttpLimits,
    reservation: &mut Reservation,
) -> Result<Bytes, Failure> {
    let mut body = request.into_body();
    let too_large =
        || Failure::with_detail(Code::BodyTooLarge, format!("the body exceeds the limit of {limit} bytes"));
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large());
    }
    let mut cover = |bytes| {
        let is_covered = bytes <= SMALL || reservation.grow_to(bytes);
        if is_covered { Ok(()) } else { Err(Failure::overloaded()) }
    };
    cover(announced)?;
    let (mut deadline, mut whole) = (BodyDeadline::new(limits), Vec::new());
    while let Some(chunk) = deadline.next_chunk(&mut body).await? {
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
    Ok(whole.into())
}

/// Deadline for receiving a body, extended by the bytes received. Nearly all bodies arrive with their head and never start
/// the timer.
struct BodyDeadline {
    started: Instant,
    received: usize,
    base: Duration,
    rate: u32,
    timer: Option<Pin<Box<Sleep>>>,
}

impl BodyDeadline {
    fn new(limits: &HttpLimits) -> Self {
        let (base, rate) = (limits.body_timeout, limits.min_body_rate.max(1));
        Self { started: Instant::now(), received: 0, base, rate, timer: None }
    }

    /// Returns the next bytes; `None` at the end.
    async fn next_chunk(&mut self, body: &mut Body) -> Result<Option<Bytes>, Failure> {
        let frame = std::future::poll_fn(|context| {
            let mut frame = std::pin::pin!(body.frame());
            if let std::task::Poll::Ready(frame) = frame.as_mut().poll(context) {
                return std::task::Poll::Ready(Some(frame));
            }
            let deadline = self.deadline();
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            timer.as_mut().poll(context).map(|()| None)
        });
        match frame.await {
            None => Err(Failure::with_detail(Code::RequestTimeout, "the body did not arrive in time")),
            Some(None) => Ok(None),
            Some(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                self.received += data.len();
                Ok(Some(data))
            }
            Some(Some(Err(error))) => Err(incomplete_body(&error)),
        }
    }

    fn deadline(&self) -> Instant {
        let earned = u32::try_from(self.received).unwrap_or(u32::MAX) / self.rate;
        self.started + self.base + Duration::from_secs(u64::from(earned))
    }
}

/// Returns the failure for a client that closed the connection or broke the framing.
fn incomplete_body(error: &axum::Error) -> Failure {
    tracing::debug!(%error, "a body is incomplete");
    Failure::with_detail(
        Code::MalformedJson,
        "the body is incomplete, or its framing does not match its headers",
    )
}
