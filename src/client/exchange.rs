//! Request and response: sends a request, repeats it while a retry may help, and classifies the response.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex::{Captures, Regex};
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use serde::Serialize;

use super::redaction::redact_secrets;
use super::transport::{MAX_RESPONSE_BYTES, RawResponse};
use super::{Client, ClientError, Result, RetryPolicy, Revision, redacted};
use crate::api::Problem;

pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<String>,
    /// Value of `If-Match`, if the request applies to one revision only.
    at: Option<Revision>,
    /// Value of `Idempotency-Key`, if it is not random: a repeated command repeats the request.
    idempotency_key: Option<String>,
    /// The media type of the response.
    accept: &'static str,
}

impl Request {
    pub(super) fn new(method: Method, path: String) -> Self {
        Self { method, path, body: None, at: None, idempotency_key: None, accept: "application/json" }
    }

    pub(super) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub(super) fn json(self, body: &impl Serialize) -> Self {
        self.body(serde_json::to_string(body).expect("a request of texts can be written as JSON"))
    }

    /// Adds a query parameter, such as `dry_run=true`, if `is_set`.
    pub(super) fn parameter(mut self, parameter: &str, is_set: bool) -> Self {
        if is_set {
            let separator = if self.path.contains('?') { '&' } else { '?' };
            self.path += &format!("{separator}{parameter}");
        }
        self
    }

    pub(super) fn idempotency_key(mut self, key: String) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    pub(super) fn accept(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    pub(super) fn at(mut self, revision: Option<&Revision>) -> Self {
        self.at = revision.cloned();
        self
    }

    /// Whether the request changes something on the server.
    fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("dry_run=true")
    }

    /// Marks `error` as one after which the request may have been applied.
    fn mark_maybe_applied(&self, error: ClientError) -> ClientError {
        match self.is_write() {
            true => ClientError::MaybeApplied { error: Box::new(error), path: self.path.clone() },
            false => error,
        }
    }
}

/// Why an attempt failed.
pub(super) struct Failure {
    pub(super) error: ClientError,
    /// Whether a retry may help.
    is_temporary: bool,
    /// Whether the server may have carried out the request.
    maybe_applied: bool,
    /// How long to wait before a retry, if the server says so.
    wait: Option<Duration>,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { error, is_temporary: false, maybe_applied: false, wait: None }
    }
}

impl Client {
    /// Sends the request, with retries, until it succeeds, the retry policy is exhausted, or an error comes that a
    /// retry cannot change.
    pub(super) async fn send(&self, request: &Request) -> Result<RawResponse> {
        let RetryPolicy { timeout, retries } = self.retry_policy;
        let started = Instant::now();
        let headers = self.headers(request);
        let mut maybe_applied = false;
        for tries in 1.. {
            let left = timeout.saturating_sub(started.elapsed());
            let received = self.transport.send(request, &headers, left).await;
            self.observe(request, &received, started);
            let answer = match received {
                Ok(response) => self.classify(request, response, maybe_applied),
                Err(error) => Err(unanswered(error, maybe_applied)),
            };
            let failure = match answer {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if !failure.is_temporary {
                return Err(failure.error);
            }
            maybe_applied |= failure.maybe_applied;
            let wait = failure.wait.unwrap_or_else(|| self.backoff(tries));
            if tries > retries || started.elapsed().saturating_add(wait) >= timeout {
                let error = failure.error;
                return Err(if maybe_applied { request.mark_maybe_applied(error) } else { error });
            }
            tokio::time::sleep(wait).await;
        }
        unreachable!("counting tries never ends")
    }

    /// Classifies a response. If an earlier one was lost (`maybe_applied`), 404 means that a DELETE has succeeded.
    pub(super) fn classify(
        &self,
        request: &Request,
        response: RawResponse,
        maybe_applied: bool,
    ) -> Result<RawResponse, Failure> {
        let RawResponse { status, headers, body, .. } = &response;
        if body.len() > MAX_RESPONSE_BYTES {
            let error = self.foreign(format!("its answer has more than {} MiB", MAX_RESPONSE_BYTES >> 20));
            return Err(request.mark_maybe_applied(error).into());
        }
        if status.is_success() {
            return Ok(response);
        }
        let (is_temporary, wait) = (is_temporary(*status), retry_after(headers));
        let Some(mut problem) = Problem::read(body, status.as_u16()).filter(|_| status.as_u16() >= 400)
        else {
            // An error from a proxy does not show whether the server carried out the request.
            let maybe_applied = is_temporary && status.is_server_error();
            return Err(Failure {
                error: self.without_problem(*status, headers),
                is_temporary,
                maybe_applied,
                wait,
            });
        };
        if maybe_applied && request.method == Method::DELETE && *status == StatusCode::NOT_FOUND {
            return Ok(response);
        }
        problem.instance.get_or_insert_with(|| request.path.clone());
        let error = ClientError::Problem(Box::new(problem));
        // The request whose response was lost may have made the change that fails this precondition.
        if maybe_applied && *status == StatusCode::PRECONDITION_FAILED {
            return Err(request.mark_maybe_applied(error).into());
        }
        Err(Failure { error, is_temporary, maybe_applied: false, wait })
    }

    /// Returns the error for a response that is neither a success nor a problem document.
    fn without_problem(&self, status: StatusCode, headers: &HeaderMap) -> ClientError {
        let number = status.as_u16();
        let shown =
            status.canonical_reason().map_or(number.to_string(), |reason| format!("{number} {reason}"));
        match headers.get(LOCATION) {
            // The API key was given for this server only, so redirects are not followed.
            Some(location) if status.is_redirection() => {
                self.foreign(format!("it redirects to {}", String::from_utf8_lossy(location.as_bytes())))
            }
            // A proxy sends these too.
            _ if is_temporary(status) => {
                self.unexpected(format!("cannot serve the request now: it responded {shown}"))
            }
            _ => self.foreign(format!("it responded {shown}")),
        }
    }

    pub(super) fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let mut headers = vec![("accept", request.accept.to_owned())];
        headers.extend(self.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal()))));
        if request.body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        headers.extend(request.at.iter().map(|Revision(tag)| ("if-match", tag.clone())));
        if request.method == Method::POST && request.is_write() {
            let mut bytes = [0; 16];
            self.random.fill(&mut bytes);
            let random = || format!("{:032x}", u128::from_be_bytes(bytes));
            headers.push(("idempotency-key", request.idempotency_key.clone().unwrap_or_else(random)));
        }
        headers
    }

    /// Returns the delay after attempt number `tries`: 200 ms, doubled each time, plus up to 50 % jitter.
    fn backoff(&self, tries: u32) -> Duration {
        let base = 200u64 << (tries - 1).min(6);
        let mut byte = [0];
        self.random.fill(&mut byte);
        Duration::from_millis(base + base * u64::from(byte[0]) / 512)
    }

    pub(super) fn observe(&self, request: &Request, received: &Result<RawResponse>, started: Instant) {
        let Some(observer) = &self.observer else { return };
        let Request { method, path, .. } = request;
        let response = match received {
            Ok(response) => response,
            Err(ClientError::Unreachable { why, .. }) => {
                return observer(&format!("{method} {path} -> no answer: {why}"), false);
            }
            Err(error) => return observer(&format!("{method} {path} -> {error}"), false),
        };
        let millis = started.elapsed().as_millis();
        let key = self.key.as_ref().map(|key| redacted(key.reveal()));
        let key = key.map(|key| format!(" (Authorization: Bearer {key})")).unwrap_or_default();
        observer(&format!("{method} {path} -> {} in {millis} ms{key}", response.status.as_u16()), false);
        if let Some(body) = &request.body {
            observer(&format!("> {}", redact_secrets(path, body)), true);
        }
        let body = String::from_utf8_lossy(&response.body);
        observer(&format!("< {}", redact_secrets(path, &without_keys(&body))), true);
    }
}

/// Classifies the failure of a request that was not answered. A server that cannot be reached is tried again only if it
/// was reached before.
fn unanswered(mut error: ClientError, maybe_applied: bool) -> Failure {
    let mut is_lost = false;
    if let ClientError::Unreachable { was_sent, .. } = &mut error {
        *was_sent |= maybe_applied;
        is_lost = *was_sent;
    }
    Failure { error, is_temporary: is_lost, maybe_applied: is_lost, wait: None }
}

/// Redacts each new API key in the body of a response.
fn without_keys(body: &str) -> Cow<'_, str> {
    static KEY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\bfk_[0-9A-Za-z]{44}\b").expect("the expression is valid"));
    KEY.replace_all(body, |key: &Captures<'_>| redacted(&key[0]))
}

fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502..=504)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
