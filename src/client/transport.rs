//! Transports: over the network, or a call of the router in this process.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use reqwest::header::HeaderMap;
use reqwest::tls::TlsInfo;
use reqwest::{StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tower::ServiceExt;

use super::{ClientError, Request, Result};
use crate::request_error::{certificate_fault, find_cause, reason};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a response: far larger than any page or form, small enough for a machine with little memory.
pub(super) const MAX_RESPONSE_BYTES: usize = 64 << 20;

const NO_ANSWER: &str = "no answer in time";

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
    /// The certificate of the server in DER, over HTTPS.
    pub(super) certificate: Option<Vec<u8>>,
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
            .tls_info(true)
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

    /// Sends the request once and waits at most `timeout` for the head of the response.
    pub(super) async fn open(
        &self,
        request: &Request,
        headers: &[(&'static str, String)],
        timeout: Duration,
    ) -> Result<Response> {
        let opened = async {
            match self {
                Self::InProcess(router) => {
                    let answer = call(router.clone(), request, headers).await;
                    answer.map_err(|error| self.unanswered(error.to_string(), false))
                }
                Self::Http { client, .. } => match self.request(client, request, headers).send().await {
                    Ok(answer) => Ok(axum::http::Response::from(answer).map(Body::new)),
                    Err(error) => Err(self.failure(&error).await),
                },
            }
        };
        let elapsed = |_elapsed| self.unanswered(NO_ANSWER.to_owned(), true);
        tokio::time::timeout(timeout, opened).await.map_err(elapsed)?
    }

    /// Sends the request once and waits at most `timeout` for the response.
    pub(super) async fn send(
        &self,
        request: &Request,
        headers: &[(&'static str, String)],
        timeout: Duration,
    ) -> Result<RawResponse> {
        match self {
            Self::InProcess(router) => {
                let received = async { collect(call(router.clone(), request, headers).await?).await };
                let received = tokio::time::timeout(timeout, received).await;
                let received = received.map_err(|_elapsed| self.unanswered(NO_ANSWER.to_owned(), true))?;
                received.map_err(|error| self.unanswered(error.to_string(), false))
            }
            Self::Http { client, .. } => {
                match receive(self.request(client, request, headers).timeout(timeout)).await {
                    Ok(response) => Ok(response),
                    Err(error) => Err(self.failure(&error).await),
                }
            }
        }
    }

    fn request(
        &self,
        client: &reqwest::Client,
        request: &Request,
        headers: &[(&'static str, String)],
    ) -> reqwest::RequestBuilder {
        let sending = client.request(request.method.clone(), self.address().to_owned() + &request.path);
        let sending = headers.iter().fold(sending, |sending, (name, value)| sending.header(*name, value));
        sending.body(request.body.clone().unwrap_or_default())
    }

    pub(super) fn unanswered(&self, why: String, was_sent: bool) -> ClientError {
        ClientError::Unreachable { url: self.address().to_owned(), why, was_sent }
    }

    async fn failure(&self, error: &reqwest::Error) -> ClientError {
        if let Some(why) = certificate_fault(error) {
            return ClientError::Untrusted { url: self.address().to_owned(), why };
        }
        match self.plain_http(error).await {
            Some(url) => ClientError::PlainHttp { url },
            None => self.unanswered(reason(error), !error.is_connect() && !error.is_builder()),
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
    let tls = answer.extensions().get::<TlsInfo>();
    let certificate = tls.and_then(|tls| tls.peer_certificate()).map(<[u8]>::to_vec);
    let mut body = Vec::new();
    while body.len() <= MAX_RESPONSE_BYTES
        && let Some(part) = answer.chunk().await?
    {
        body.extend_from_slice(&part);
    }
    Ok(RawResponse { status, headers, body, certificate })
}

async fn call(
    router: Router,
    request: &Request,
    headers: &[(&'static str, String)],
) -> std::result::Result<Response, axum::Error> {
    let mut builder = axum::http::Request::builder().method(request.method.clone()).uri(&request.path);
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    let body = Body::from(request.body.clone().unwrap_or_default());
    let request = builder.header("host", "localhost").body(body).map_err(axum::Error::new)?;
    let Ok(answer) = router.oneshot(request).await;
    Ok(answer)
}

async fn collect(answer: Response) -> std::result::Result<RawResponse, axum::Error> {
    let (parts, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    Ok(RawResponse { status: parts.status, headers: parts.headers, body: body.into(), certificate: None })
}
