//! Sends requests to the servers of others. The only place that makes an HTTP client for them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::Sender;
use super::guard::{GuardedResolver, Lookup, SystemLookup};
use super::report::{self, Answer};
use crate::clock::Clock;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::classify::READ_HEADERS;
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::address::{AddressPolicy, is_common_port};
use crate::domain::integration::outbound::HttpRequest;
use crate::request_error::reason;

/// Maximum bytes read of a body that only goes to the log of attempts. The rest is not received: the connection is closed.
const MAX_LOGGED_BODY: usize = 16 << 10;

/// Maximum number of headers of an answer.
const MAX_HEADERS: usize = 64;

/// Idle connections kept for each host.
const MAX_IDLE: usize = 4;

/// How long an idle connection is kept: less than the 5 seconds after which common servers close it. A request on a connection
/// that is being closed would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub struct SendLimits {
    /// Name resolution, connection and TLS handshake.
    pub connect: Duration,
    /// The whole exchange.
    pub exchange: Duration,
    /// The body of an answer that only goes to the log of attempts: the status has decided.
    pub body: Duration,
}

impl Default for SendLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            exchange: Duration::from_secs(15),
            body: Duration::from_secs(5),
        }
    }
}

/// Sends requests over HTTP/1.1, with TLS or without.
pub struct HttpSender {
    policy: Arc<AddressPolicy>,
    lookup: Arc<dyn Lookup>,
    limits: SendLimits,
    clock: Arc<dyn Clock>,
    // Made at the first request: a server without webhooks needs no certificates of authorities.
    encrypted: OnceLock<Client>,
    plain: OnceLock<Client>,
}

impl HttpSender {
    pub fn new(policy: AddressPolicy, clock: Arc<dyn Clock>) -> Self {
        Self::with_lookup(policy, clock, Arc::new(SystemLookup), SendLimits::default())
    }

    /// Creates a sender with its own resolver and limits.
    pub fn with_lookup(
        policy: AddressPolicy,
        clock: Arc<dyn Clock>,
        lookup: Arc<dyn Lookup>,
        limits: SendLimits,
    ) -> Self {
        let (encrypted, plain) = (OnceLock::new(), OnceLock::new());
        Self { policy: Arc::new(policy), lookup, limits, clock, encrypted, plain }
    }

    /// Returns the client for the scheme and port of `url`: addresses may be allowed with TLS only, and on common ports only.
    fn client(&self, url: &Url) -> Result<Client, reqwest::Error> {
        let is_encrypted = url.scheme() == "https";
        let port = url.port_or_known_default().unwrap_or_default();
        if !is_common_port(port) {
            return self.new_client(port, is_encrypted);
        }
        let slot = if is_encrypted { &self.encrypted } else { &self.plain };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = self.new_client(port, is_encrypted)?;
        Ok(slot.get_or_init(|| client).clone())
    }

    #[expect(clippy::disallowed_methods, reason = "the one constructor of clients for other servers")]
    fn new_client(&self, port: u16, is_encrypted: bool) -> Result<Client, reqwest::Error> {
        // A second installation fails, and would install the same provider.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let (policy, lookup) = (Arc::clone(&self.policy), Arc::clone(&self.lookup));
        Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .http1_max_headers(MAX_HEADERS)
            .https_only(is_encrypted)
            .connect_timeout(self.limits.connect)
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .user_agent(concat!("forms/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(GuardedResolver { policy, lookup, port, is_encrypted })
            .build()
    }

    /// Sends `request`, and reads at most `max_body` bytes of the body, for at most `body_time`.
    async fn exchange(
        &self,
        request: &HttpRequest,
        max_body: usize,
        body_time: Duration,
    ) -> Result<Answer, Outcome> {
        let deadline = Instant::now() + self.limits.exchange;
        // Includes hosts that are addresses: these are never resolved.
        self.policy.check_url(&request.url).map_err(|refusal| report::refused(&refusal))?;
        let client = self.client(&request.url).map_err(|error| {
            let text = format!("the server has no certificates of authorities: {}", reason(&error));
            report::retry(ErrorCode::TlsError, text)
        })?;
        let malformed = ErrorCode::InvalidRequest.error("a header of the request is not valid");
        let sending = build(&client, request).ok_or(Outcome::Permanent { error: malformed })?.send();
        let sent = timeout_at(deadline, sending).await.map_err(|_elapsed| report::timed_out())?;
        let mut response = sent.map_err(|error| report::failed(&error))?;
        let mut body = Vec::new();
        let body_deadline = deadline.min(Instant::now() + body_time);
        let read = timeout_at(body_deadline, read_body(&mut response, &mut body, max_body)).await;
        Ok(Answer {
            status: response.status().as_u16(),
            headers: READ_HEADERS
                .into_iter()
                .filter_map(|name| Some((name, header(&response, name)?)))
                .collect(),
            remote_address: response.remote_addr(),
            is_complete: read.unwrap_or(false),
            body,
        })
    }
}

#[async_trait]
impl Sender for HttpSender {
    async fn send(&self, request: &HttpRequest) -> SendReport {
        let started = Instant::now();
        let report = match self.exchange(request, MAX_LOGGED_BODY, self.limits.body).await {
            Ok(answer) => report::of_answer(&answer, request, self.clock.now()),
            Err(outcome) => outcome.into(),
        };
        SendReport { duration_ms: report::millis(started), ..report }
    }

    async fn call(&self, request: &HttpRequest, max_body: usize) -> Result<Answer, Outcome> {
        self.exchange(request, max_body, self.limits.exchange).await
    }
}

/// Builds the request; `None` if a header is not valid.
fn build(client: &Client, request: &HttpRequest) -> Option<reqwest::RequestBuilder> {
    let method = Method::from_bytes(request.method.as_bytes()).ok()?;
    let mut building = client.request(method, request.url.clone()).body(request.body.clone());
    for (name, value) in &request.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(value.reveal()).ok()?;
        value.set_sensitive(true);
        building = building.header(name, value);
    }
    Some(building)
}

fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

/// Reads at most `max` bytes of the body; returns whether that is all of it.
async fn read_body(response: &mut Response, body: &mut Vec<u8>, max: usize) -> bool {
    loop {
        match response.chunk().await {
            Ok(Some(part)) if part.len() <= max - body.len() => body.extend_from_slice(&part),
            Ok(Some(part)) => {
                body.extend_from_slice(&part[..max - body.len()]);
                return false;
            }
            Ok(None) => return true,
            Err(_broken) => return false,
        }
    }
}
