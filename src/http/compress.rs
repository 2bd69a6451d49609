//! Compression of answers for those who ask, and only then: others pay nothing for it.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::ACCEPT_ENCODING;
use axum::response::Response;
use tower::{ServiceExt, service_fn};
use tower_http::compression::Compression;
use tower_http::compression::predicate::SizeAbove;

/// Below this compression makes nothing better, in bytes.
const WORTH_IT: u64 = 1_024;

/// `response` in the best of the `encodings` that a client listed, unless it is small.
pub(super) async fn compress(response: Response, encodings: HeaderValue) -> Response {
    let mut request = Request::new(Body::empty());
    request.headers_mut().insert(ACCEPT_ENCODING, encodings);
    let mut response = Some(response);
    let inner = service_fn(move |_: Request| {
        let response = response.take().unwrap_or_default();
        std::future::ready(Ok::<_, Infallible>(response))
    });
    match Compression::new(inner).compress_when(SizeAbove::new(WORTH_IT)).oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}
