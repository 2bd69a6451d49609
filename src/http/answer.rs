//! Shapes of answers that several handlers give.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::Failure;

/// `body` as JSON.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, Failure> {
    let text = serde_json::to_vec(body)?;
    let mut response = (status, Body::from(text)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// 201 and where to find what was made; `replayed` if an earlier attempt had made it.
pub(super) fn created(body: &impl Serialize, location: String, replayed: bool) -> Result<Response, Failure> {
    let mut response = json(StatusCode::CREATED, body)?;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    if replayed {
        let name = HeaderName::from_static("idempotency-replayed");
        response.headers_mut().insert(name, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// `body`, a page of the list at `uri`, with a link to the one that begins at `next`.
pub(super) fn page(
    body: &impl Serialize,
    uri: &Uri,
    limit: usize,
    next: Option<&str>,
) -> Result<Response, Failure> {
    let mut response = json(StatusCode::OK, body)?;
    if let Some(cursor) = next {
        let link = format!("<{}?limit={limit}&cursor={cursor}>; rel=\"next\"", uri.path());
        if let Ok(link) = HeaderValue::try_from(link) {
            response.headers_mut().insert(LINK, link);
        }
    }
    Ok(response)
}
