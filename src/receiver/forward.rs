//! Forwarding of events to the program under development.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};
use reqwest::{Client, Url};

use crate::request_error;

/// Maximum time for the program to answer. Senders give up after 15 seconds.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum size of an answer that is passed on, in bytes. Senders read no more.
const MAX_ANSWER: usize = 16 << 10;

/// Headers of an event that belong to the connection on which it came.
const NOT_FORWARDED: [HeaderName; 5] =
    [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING, header::EXPECT];

/// Headers of an answer that are passed on.
const PASSED_ON: [HeaderName; 3] = [header::CONTENT_TYPE, header::LOCATION, header::RETRY_AFTER];

/// The program that gets each event as it was received.
#[derive(Debug, Clone)]
pub struct Forward {
    client: Client,
    url: Url,
}

impl Forward {
    /// Creates the forwarding to `url`, which is HTTP or HTTPS. Redirects are not followed, and no proxy is used.
    #[expect(clippy::disallowed_methods, reason = "the developer names the URL, on the command line")]
    pub fn new(url: &str) -> Result<Self, &'static str> {
        let expected = "expected a URL such as http://localhost:3000/webhook";
        let is_http = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        let url = Url::parse(url).ok().filter(is_http).ok_or(expected)?;
        // A second installation fails, and would install the same provider.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|_unusable| expected)?;
        Ok(Self { client, url })
    }

    /// Sends `body` with all `headers` but those of the connection, and returns the answer.
    ///
    /// # Errors
    /// If the program does not answer, with the reason.
    pub(super) async fn send(&self, headers: &HeaderMap, body: &Bytes) -> Result<Response, String> {
        let mut forwarded = headers.clone();
        NOT_FORWARDED.iter().for_each(|name| drop(forwarded.remove(name)));
        let request = self.client.post(self.url.clone()).headers(forwarded).body(body.clone());
        let why = |error: reqwest::Error| format!("{}: {}", self.url, request_error::reason(&error));
        let answer = request.send().await.map_err(why)?;
        let (status, mut headers) = (answer.status(), HeaderMap::new());
        for name in PASSED_ON {
            headers.extend(answer.headers().get(&name).map(|value| (name, value.clone())));
        }
        let mut body = answer.bytes().await.map_err(why)?;
        body.truncate(MAX_ANSWER);
        Ok((status, headers, Body::from(body)).into_response())
    }
}
