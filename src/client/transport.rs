//! Transports: over the network, or a call of the router in this process.

use std::fmt;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use tower::ServiceExt;

use super::{ClientError, Request};
use crate::request_error::{certificate_fault, reason};

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
    #[expect(clippy::disallowed_methods, reason = "calls the server that the user names")]
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
