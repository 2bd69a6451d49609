//! Cross-origin resource sharing (WHATWG Fetch §3.2): which web origins may read responses. Without configured origins,
//! nothing here changes a response.

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

/// What the head of a request implies for the CORS headers of its response.
pub(crate) enum Cors {
    /// No origins are configured.
    Off,
    /// The request does not come from an allowed origin.
    Refused,
    /// The request comes from an allowed origin.
    Allowed { origin: HeaderValue, is_preflight: bool },
}

impl Cors {
    /// Reads the head of a request. Credentials are never allowed: the API has no cookies.
    pub(crate) fn of_request(method: &Method, headers: &HeaderMap, origins: &[WebOrigin]) -> Self {
        if origins.is_empty() {
            return Self::Off;
        }
        let mut sent = headers.get_all(ORIGIN).iter();
        match (sent.next(), sent.next()) {
            (Some(origin), None) if origins.iter().any(|allowed| origin == allowed.as_str()) => {
                let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
                Self::Allowed { origin: origin.clone(), is_preflight: method == Method::OPTIONS && asks }
            }
            _ => Self::Refused,
        }
    }

    /// Adds the headers to a response. All responses vary by origin, so that no cache serves one origin's to another.
    pub(crate) fn add_headers(self, headers: &mut HeaderMap) {
        match self {
            Self::Off => {}
            Self::Refused => drop(headers.append(VARY, HeaderValue::from(ORIGIN))),
            Self::Allowed { origin, is_preflight } => {
                headers.append(VARY, HeaderValue::from(ORIGIN));
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                match headers.get(ALLOW).cloned().filter(|_| is_preflight) {
                    Some(methods) => {
                        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
                        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ACCEPTED);
                        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
                    }
                    None => drop(headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)),
                }
            }
        }
    }
}
