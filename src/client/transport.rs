//! How a request reaches the server: over the network, or as a call of the router.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use tower::ServiceExt;

use super::{ClientError, Request};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Bytes an answer may have: far beyond any page or form, short of the memory of a small machine.
pub(super) const MAX_ANSWER: usize = 64 << 20;

/// Bytes that are read of a refusal: no problem document has more, and what else there is counts by its status.
const MAX_REFUSAL: usize = 1 << 20;

/// The way to the server.
pub enum Transport {
    /// Over the network.
    Http { client: reqwest::Client, url: Url },
    /// In this process.
    InProcess(Router),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address())
    }
}

/// An answer, whatever it says. A body that is too large is cut off somewhere behind its limit.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// No answer came.
pub(super) struct Lost {
    pub(super) why: String,
    /// Whether the request may have been carried out all the same.
    pub(super) maybe_done: bool,
}

impl Transport {
    /// The way to the server at `url`.
    ///
    /// # Errors
    /// If the system's certificates cannot be used for an `https` address.
    pub fn http(url: Url, is_loopback: bool) -> Result<Self, ClientError> {
        // A second installation is refused, and is the same provider.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("forms/", env!("CARGO_PKG_VERSION")));
        if is_loopback {
            builder = builder.no_proxy();
        }
        match builder.build() {
            Ok(client) => Ok(Self::Http { client, url }),
            Err(error) => Err(ClientError::Unexpected { url: url.to_string(), what: reason(&error) }),
        }
    }

    /// What the server is called.
    pub(super) fn address(&self) -> &str {
        match self {
            Self::Http { url, .. } => url.as_str().trim_end_matches('/'),
            Self::InProcess(_) => "the store",
        }
    }

    /// Sends the request once and waits for its answer, `timeout` at most.
    pub(super) async fn send(
        &self,
        request: &Request,
        headers: &[(&'static str, String)],
        timeout: Duration,
    ) -> Result<Reply, Lost> {
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
                let mut answer = sending.send().await.map_err(|error| lost(&error))?;
                let (status, headers) = (answer.status(), answer.headers().clone());
                let max = if status.is_success() { MAX_ANSWER } else { MAX_REFUSAL };
                let mut body = Vec::new();
                while body.len() <= max
                    && let Some(part) = answer.chunk().await.map_err(|error| lost(&error))?
                {
                    body.extend_from_slice(&part);
                }
                Ok(Reply { status, headers, body })
            }
            Self::InProcess(router) => call(router.clone(), request, headers).await,
        }
    }
}

async fn call(router: Router, request: &Request, headers: &[(&'static str, String)]) -> Result<Reply, Lost> {
    let mut builder = axum::http::Request::builder()
        .method(request.method.clone())
        .uri(&request.path)
        .header("host", "localhost");
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    let body = Body::from(request.body.clone().unwrap_or_default());
    let undone = |why: String| Lost { why, maybe_done: false };
    let request = builder.body(body).map_err(|error| undone(error.to_string()))?;
    let Ok(answer) = router.oneshot(request).await;
    let (parts, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|error| undone(error.to_string()))?;
    Ok(Reply { status: parts.status, headers: parts.headers, body: body.into() })
}

fn lost(error: &reqwest::Error) -> Lost {
    Lost { why: reason(error), maybe_done: !error.is_connect() && !error.is_builder() }
}

/// The last cause says what happened; those around it say only that sending failed.
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
    described(&cause.to_string())
}

/// What the texts of the libraries below mean, by a part of each.
const CAUSES: [(&str, &str); 10] = [
    ("received corrupt message", "it does not answer in TLS; http:// may be meant"),
    ("UnknownIssuer", "its certificate is from an unknown authority"),
    ("Expired", "its certificate has expired"),
    ("NotValidForName", "its certificate is for another host"),
    ("failed to lookup address", "the host name is not known"),
    ("connection closed before message completed", "it closed the connection without an answer"),
    ("end of file before message length reached", "its answer broke off"),
    ("unexpected EOF", "its answer broke off"),
    ("invalid HTTP", "its answer is not HTTP"),
    ("Invalid chunk", "its answer is not HTTP"),
];

/// `text` in our words, if we have any for it; else without the operating system's number.
fn described(text: &str) -> String {
    match CAUSES.iter().find(|(part, _)| text.contains(part)) {
        Some((_, meaning)) => (*meaning).to_owned(),
        None => text.split(" (os error").next().unwrap_or_default().to_lowercase(),
    }
}
