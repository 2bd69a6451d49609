//! Responses to what is not a request: a head that did not arrive in time, or HTTP without TLS. The connection must be closed
//! after them.

use axum::http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderMap, HeaderValue};

use crate::api::Code;
use crate::app::ApiError;
use crate::config::HttpSettings;
use crate::http::server::base_url::base_url;
use crate::http::server::http_service::set_common_headers;
use crate::http::server::request_id::request_id;

/// Returns the serialized response to a head that did not arrive in time.
pub(crate) fn head_timeout(settings: &HttpSettings, is_tls: bool) -> Vec<u8> {
    serialize(Code::RequestTimeout, "the headers did not arrive in time", settings, is_tls)
}

/// Returns the serialized response to HTTP without TLS on the port for HTTPS.
pub(crate) fn https_expected(settings: &HttpSettings) -> Vec<u8> {
    let detail = "this port serves HTTPS only; use https:// instead of http://";
    serialize(Code::InvalidHeader, detail, settings, false)
}

/// Tells browsers to use only HTTPS for this host (RFC 6797). May be sent only over TLS.
pub(crate) fn require_https(headers: &mut HeaderMap) {
    headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
}

fn serialize(code: Code, detail: &str, settings: &HttpSettings, is_tls: bool) -> Vec<u8> {
    let (id, base) = (request_id(&HeaderMap::new()), base_url(&HeaderMap::new(), false, settings));
    let mut response = ApiError::with_detail(code, detail).render(id.to_str().unwrap_or_default(), &base);
    set_common_headers(response.headers_mut(), &id);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    if is_tls {
        require_https(response.headers_mut());
    }
    let mut bytes = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend([b"\r\n", response.body().as_slice()].concat());
    bytes
}
