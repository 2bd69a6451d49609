//! Transports: over the network, or a call of the router in this process.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use rustls::CertificateError;
use tower::ServiceExt;

use super::{ClientError, Request};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a response: far larger than any page or form, small enough for a machine with little memory.
pub(super) const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Bytes read of an error response. No problem document is larger; otherwise the status alone counts.
const MAX_ERROR_BYTES: usize = 1 << 20;

pub enum Transport {
    Http { client: reqwest::Client, url: Url },
    InProcess(Router),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address())
    }
}

/// A response of any status. A body above the limit is truncated somewhere after it.
pub(super) struct RawResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

pub(super) struct SendFailure {
    pub(super) why: String,
    /// Whether the server may have carried out the request.
    pub(super) maybe_applied: bool,
    /// Why the server's certificate is not trusted, if that is the reason.
    pub(super) untrusted: Option<&'static str>,
}

impl Transport {
    /// Creates the transport to the server at `url`.
    ///
    /// # Errors
    /// If the system's certificates cannot be used for an `https` address.
    pub fn http(url: Url, is_loopback: bool) -> Result<Self, ClientError> {
        // A second installation fails, and would install the same provider.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("forms/", env!("CARGO_PKG_VERSION")));
        if is_loopback {
            builder = builder.no_proxy();
        }
        match builder.build() {
            Ok(client) => Ok(Self::Http { client, url }),
            Err(error) => Err(ClientError::Unexpected { url: url.to_string(), message: reason(&error) }),
        }
    }

    /// Name of the server in messages: its URL.
    pub(super) fn address(&self) -> &str {
        match self {
            Self::Http { url, .. } => url.as_str().trim_end_matches('/'),
            Self::InProcess(_) => "the store",
        }
    }

    /// Sends the request once and waits at most `timeout` for the response.
    pub(super) async fn send(
        &self,
        request: &Request,
        headers: &[(&'static str, String)],
        timeout: Duration,
    ) -> Result<RawResponse, SendFailure> {
        match self {
            Self::Http { client, url } => {
                let url = format!("{}{}", url.as_str().trim_end_matches('/'), request.path);
                let mut sending = client.request(request.method.clone(), url).timeout(timeout);
                for (name, value) in headers {
                    sending = sending.header(*name, value);
                }
                if let Some(body) = &request.body {
                    sending = sending.body(body.clone());
                }
                let mut answer = sending.send().await.map_err(|error| send_failure(&error))?;
                let (status, headers) = (answer.status(), answer.headers().clone());
                let max = if status.is_success() { MAX_RESPONSE_BYTES } else { MAX_ERROR_BYTES };
                let mut body = Vec::new();
                while body.len() <= max
                    && let Some(part) = answer.chunk().await.map_err(|error| send_failure(&error))?
                {
                    body.extend_from_slice(&part);
                }
                Ok(RawResponse { status, headers, body })
            }
            Self::InProcess(router) => call(router.clone(), request, headers).await,
        }
    }
}

async fn call(
    router: Router,
    request: &Request,
    headers: &[(&'static str, String)],
) -> Result<RawResponse, SendFailure> {
    let mut builder = axum::http::Request::builder()
        .method(request.method.clone())
        .uri(&request.path)
        .header("host", "localhost");
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    let body = Body::from(request.body.clone().unwrap_or_default());
    let not_applied = |why: String| SendFailure { why, maybe_applied: false, untrusted: None };
    let request = builder.body(body).map_err(|error| not_applied(error.to_string()))?;
    let Ok(answer) = router.oneshot(request).await;
    let (parts, body) = answer.into_parts();
    let body =
        axum::body::to_bytes(body, usize::MAX).await.map_err(|error| not_applied(error.to_string()))?;
    Ok(RawResponse { status: parts.status, headers: parts.headers, body: body.into() })
}

fn send_failure(error: &reqwest::Error) -> SendFailure {
    SendFailure {
        why: reason(error),
        maybe_applied: !error.is_connect() && !error.is_builder(),
        untrusted: certificate_fault(error),
    }
}

/// Returns why the server's certificate is not trusted, if that is what failed.
fn certificate_fault(error: &reqwest::Error) -> Option<&'static str> {
    let mut causes = std::iter::successors(error.source(), |cause| cause_of(*cause));
    let tls = causes.find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    let rustls::Error::InvalidCertificate(fault) = tls else { return None };
    Some(match fault {
        CertificateError::UnknownIssuer => "it is from an unknown authority",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host"
        }
        CertificateError::Revoked => "it was revoked",
        // The library has no code of its own for the certificate of an authority.
        _ => "it is not valid for a server; is it the certificate of an authority (CA:TRUE)?",
    })
}

/// Returns the cause of `error`. `source` of an I/O error would skip the error that it wraps.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>() {
        Some(error) => error.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

/// Returns the innermost cause: the outer ones only report that sending failed.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    if let Some(io) = cause.downcast_ref::<std::io::Error>()
        && io.kind() == std::io::ErrorKind::ConnectionRefused
    {
        return "connection refused".to_owned();
    }
    describe_cause(&cause.to_string())
}

/// Descriptions of library errors, found by a part of the library's text.
const CAUSES: [(&str, &str); 7] = [
    ("received corrupt message", "it does not answer in TLS; http:// may be meant"),
    ("failed to lookup address", "the host name is not known"),
    ("connection closed before message completed", "it closed the connection without an answer"),
    ("end of file before message length reached", "its answer broke off"),
    ("unexpected EOF", "its answer broke off"),
    ("invalid HTTP", "its answer is not HTTP"),
    ("Invalid chunk", "its answer is not HTTP"),
];

/// Describes `text` for users, or returns it without the operating system's error number.
fn describe_cause(text: &str) -> String {
    match CAUSES.iter().find(|(part, _)| text.contains(part)) {
        Some((_, meaning)) => (*meaning).to_owned(),
        None => text.split(" (os error").next().unwrap_or_default().to_lowercase(),
    }
}
