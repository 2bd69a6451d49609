//! Transports: over the network, or a call of the router in this process.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tower::ServiceExt;

use super::{ClientError, Request, Result};
use crate::request_error::{certificate_fault, find_cause, reason};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a response: far larger than any page or form, small enough for a machine with little memory.
pub(super) const MAX_RESPONSE_BYTES: usize = 64 << 20;

pub enum Transport {
    Http { client: reqwest::Client, url: Url },
    InProcess(Router),
}

/// Whether a file in PEM format has a certificate. The TLS library would trust none, and not say why.
pub fn has_certificate(pem: &[u8]) -> bool {
    matches!(CertificateDer::pem_slice_iter(pem).next(), Some(Ok(_)))
}

/// A response of any status. A body above the limit is truncated somewhere after it.
pub(super) struct RawResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Transport {
    /// Creates the transport to the server at `url`.
    ///
    /// # Errors
    /// If the system's certificates cannot be used for an `https` address.
    #[expect(clippy::disallowed_methods, reason = "calls the server that the user names")]
    pub fn http(url: Url, is_loopback: bool) -> Result<Self> {
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
            Err(error) => {
                let message = format!("cannot be called: {}", reason(&error));
                Err(ClientError::Unexpected { url: url.to_string(), message })
            }
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
    ) -> Result<RawResponse> {
        let unanswered = |why: String, was_sent| {
            let url = self.address().to_owned();
            ClientError::Unreachable { url, why, was_sent }
        };
        let error = match self {
            Self::InProcess(router) => {
                let answer = tokio::time::timeout(timeout, call(router.clone(), request, headers)).await;
                let answer = answer.map_err(|_elapsed| unanswered("no answer in time".to_owned(), true))?;
                return answer.map_err(|error| unanswered(error.to_string(), false));
            }
            Self::Http { client, .. } => {
                let mut sending =
                    client.request(request.method.clone(), self.address().to_owned() + &request.path);
                for (name, value) in headers {
                    sending = sending.header(*name, value);
                }
                sending = sending.body(request.body.clone().unwrap_or_default()).timeout(timeout);
                match receive(sending).await {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                }
            }
        };
        if let Some(why) = certificate_fault(&error) {
            return Err(ClientError::Untrusted { url: self.address().to_owned(), why });
        }
        match self.plain_http(&error).await {
            Some(url) => Err(ClientError::PlainHttp { url }),
            None => Err(unanswered(reason(&error), !error.is_connect() && !error.is_builder())),
        }
    }

    /// Returns the address with `http` if the server does not answer in TLS, but there.
    async fn plain_http(&self, error: &reqwest::Error) -> Option<String> {
        let Self::Http { client, url } = self else { return None };
        let rustls::Error::InvalidMessage(_) = find_cause(error)? else { return None };
        let mut plain = url.clone();
        plain.set_scheme("http").ok()?;
        client.head(plain.clone()).timeout(CONNECT_TIMEOUT).send().await.ok()?;
        Some(plain.as_str().trim_end_matches('/').to_owned())
    }
}

async fn receive(request: reqwest::RequestBuilder) -> reqwest::Result<RawResponse> {
    let mut answer = request.send().await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = Vec::new();
    while body.len() <= MAX_RESPONSE_BYTES
        && let Some(part) = answer.chunk().await?
    {
        body.extend_from_slice(&part);
    }
    Ok(RawResponse { status, headers, body })
}

async fn call(
    router: Router,
    request: &Request,
    headers: &[(&'static str, String)],
) -> std::result::Result<RawResponse, axum::Error> {
    let mut builder = axum::http::Request::builder().method(request.method.clone()).uri(&request.path);
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    let body = Body::from(request.body.clone().unwrap_or_default());
    let request = builder.header("host", "localhost").body(body).map_err(axum::Error::new)?;
    let Ok(answer) = router.oneshot(request).await;
    let (parts, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    Ok(RawResponse { status: parts.status, headers: parts.headers, body: body.into() })
}
