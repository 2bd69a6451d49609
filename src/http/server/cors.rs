//! Cross-origin resource sharing (WHATWG Fetch §3.2): which web origins may read responses. Without configured origins,
//! nothing here changes a response.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, ORIGIN,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method};

use crate::config::WebOrigin;

/// Response headers that scripts may read besides those that Fetch always allows.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Location, Link, ETag, Retry-After, X-Request-Id, Forms-Total, Forms-Dropped, Idempotency-Replayed",
);

/// Request headers that scripts may send. `*` would not include `Authorization`.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("Authorization, Content-Type, Accept, If-Match, Idempotency-Key, X-Request-Id");

/// Seconds for which browsers may keep the answer to a preflight request.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// What the head of a request implies for the CORS headers of its response, if any origins are allowed.
pub(crate) struct Cors {
    /// The origin of the request, if it is allowed.
    origin: Option<HeaderValue>,
    is_preflight: bool,
}

impl Cors {
    /// Reads the head of a request. Credentials are never allowed: the API has no cookies.
    pub(crate) fn of_request(request: &Request, origins: &[WebOrigin]) -> Option<Self> {
        let headers = request.headers();
        let is_preflight =
            request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let origin = headers.get(ORIGIN).filter(|sent| {
            headers.get_all(ORIGIN).iter().count() == 1
                && origins.iter().any(|allowed| *sent == allowed.as_str())
        });
        (!origins.is_empty()).then(|| Self { origin: origin.cloned(), is_preflight })
    }

    /// Adds the headers to a response. All responses vary by origin, so that no cache serves one origin's to another.
    pub(crate) fn add_headers(self, headers: &mut HeaderMap) {
        headers.append(VARY, HeaderValue::from(ORIGIN));
        let Some(origin) = self.origin else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        match headers.get(ALLOW).cloned().filter(|_| self.is_preflight) {
            Some(methods) => {
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ACCEPTED);
                headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
            }
            None => drop(headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)),
        }
    }
}
