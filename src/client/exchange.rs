//! Request and response: sends a request, repeats it while a retry may help, and classifies the response.

use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};

use super::redaction::redact_secrets;
use super::transport::{MAX_RESPONSE_BYTES, RawResponse};
use super::{Client, ClientError, Revision, redacted};
use crate::api::Problem;

pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<String>,
    /// Value of `If-Match`, if the request applies to one revision only.
    pub(super) at: Option<Revision>,
}

impl Request {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, at: None }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub(super) fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    /// Adds the query parameter `name=true` if `is_set`.
    pub(super) fn flag(self, name: &str, is_set: bool) -> Self {
        if is_set { self.parameter(name, "true") } else { self }
    }

    /// Adds a query parameter.
    pub(super) fn parameter(mut self, name: &str, value: &str) -> Self {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        self.path += &format!("{separator}{name}={value}");
        self
    }

    pub(super) fn at(mut self, revision: Option<&Revision>) -> Self {
        self.at = revision.cloned();
        self
    }

    /// Whether the request changes something on the server.
    fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("?dry_run")
    }

    /// Whether the request would create two things when sent twice without an idempotency key.
    fn creates_resource(&self) -> bool {
        self.method == Method::POST && self.is_write()
    }

    /// Marks `error` as one after which the request may have been applied.
    fn mark_maybe_applied(&self, error: ClientError) -> ClientError {
        match self.is_write() {
            true => ClientError::MaybeApplied { error: Box::new(error), path: self.path.clone() },
            false => error,
        }
    }
}

/// Why a response is not a success.
struct ErrorResponse {
    error: ClientError,
    is_temporary: bool,
    wait: Option<Duration>,
}

impl From<ClientError> for ErrorResponse {
    fn from(error: ClientError) -> Self {
        Self { error, is_temporary: false, wait: None }
    }
}

impl Client {
    /// Sends the request, with retries, until it succeeds, the retry policy is exhausted, or an error comes that a
    /// retry cannot change.
    pub(super) async fn send(&self, request: &Request) -> Result<RawResponse, ClientError> {
        let started = Instant::now();
        let headers = self.headers(request);
        let mut maybe_applied = false;
        for tries in 1.. {
            let left = self.retry_policy.timeout.saturating_sub(started.elapsed());
            let (wait, error) = match self.transport.send(request, &headers, left).await {
                Ok(reply) => {
                    self.observe(request, &reply, started);
                    match self.classify(request, reply, maybe_applied) {
                        Ok(answer) => return Ok(answer),
                        Err(ErrorResponse { error, is_temporary: false, .. }) => return Err(error),
                        Err(ErrorResponse { error, wait, .. }) => {
                            // An error from a proxy does not show whether the server carried out the request.
                            maybe_applied |=
                                matches!(error, ClientError::WithoutProblem { status: 500.., .. });
                            (wait, error)
                        }
                    }
                }
                Err(send_failure) => {
                    let Request { method, path, .. } = request;
                    (self.observer)(&format!("{method} {path} -> no answer: {}", send_failure.why), false);
                    maybe_applied |= send_failure.maybe_applied;
                    let url = self.transport.address().to_owned();
                    if let Some(why) = send_failure.untrusted {
                        return Err(ClientError::Untrusted { url, why });
                    }
                    let (why, after) = (send_failure.why, started.elapsed());
                    (None, ClientError::Unreachable { url, why, tries, after, was_sent: maybe_applied })
                }
            };
            let wait = wait.unwrap_or_else(|| self.backoff(tries));
            if tries > self.retry_policy.retries
                || started.elapsed().saturating_add(wait) >= self.retry_policy.timeout
            {
                return Err(if maybe_applied { request.mark_maybe_applied(error) } else { error });
            }
            tokio::time::sleep(wait).await;
        }
        unreachable!("counting tries never ends")
    }

    /// Classifies a response. If an earlier one was lost (`maybe_applied`), 404 means that a DELETE has succeeded.
    fn classify(
        &self,
        request: &Request,
        reply: RawResponse,
        maybe_applied: bool,
    ) -> Result<RawResponse, ErrorResponse> {
        let RawResponse { status, headers, body } = &reply;
        let status = *status;
        if body.len() > MAX_RESPONSE_BYTES {
            let error = self.unexpected(format!("its answer has more than {} MiB", MAX_RESPONSE_BYTES >> 20));
            return Err(request.mark_maybe_applied(error).into());
        }
        let gone = request.method == Method::DELETE && status == StatusCode::NOT_FOUND;
        if status.is_success() || (maybe_applied && gone) {
            return Ok(reply);
        }
        if let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
            // The API key was given for this server only, so redirects are not followed.
            let location = String::from_utf8_lossy(location.as_bytes());
            return Err(self.unexpected(format!("it redirects to {location}")).into());
        }
        if status < StatusCode::BAD_REQUEST {
            return Err(self.unexpected(format!("it answered {status}")).into());
        }
        let error = self.refusal(request, status, body);
        // The request whose response was lost may have made the change that fails this precondition.
        if maybe_applied && status == StatusCode::PRECONDITION_FAILED {
            return Err(request.mark_maybe_applied(error).into());
        }
        Err(ErrorResponse { error, is_temporary: is_retryable(status), wait: retry_after(headers) })
    }

    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let mut headers = vec![("accept", "application/json".to_owned())];
        headers.extend(self.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal()))));
        if request.body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        headers.extend(request.at.iter().map(|Revision(tag)| ("if-match", tag.clone())));
        if request.creates_resource() {
            headers.push(("idempotency-key", self.new_idempotency_key()));
        }
        headers
    }

    /// Returns 128 random bits in hexadecimal.
    fn new_idempotency_key(&self) -> String {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        format!("{:032x}", u128::from_be_bytes(bytes))
    }

    /// Returns the delay after attempt number `tries`: 200 ms, doubled each time, plus up to 50 % jitter.
    fn backoff(&self, tries: u32) -> Duration {
        let base = 200u64 << (tries - 1).min(6);
        let mut byte = [0];
        self.random.fill(&mut byte);
        Duration::from_millis(base + base * u64::from(byte[0]) / 512)
    }

    /// Decodes an error response. The status of the response takes precedence over the one in `body`.
    fn refusal(&self, request: &Request, status: StatusCode, body: &[u8]) -> ClientError {
        match Problem::read(body, status.as_u16()) {
            Some(mut problem) => {
                problem.instance.get_or_insert_with(|| request.path.clone());
                ClientError::Problem(Box::new(problem))
            }
            None => ClientError::WithoutProblem {
                url: self.transport.address().to_owned(),
                status: status.as_u16(),
                reason: status.canonical_reason().unwrap_or_default(),
            },
        }
    }

    fn observe(&self, request: &Request, reply: &RawResponse, started: Instant) {
        let Request { method, path, .. } = request;
        let millis = started.elapsed().as_millis();
        let key = self.key.as_ref().map(|key| redacted(key.reveal()));
        let key = key.map(|key| format!(" (Authorization: Bearer {key})")).unwrap_or_default();
        (self.observer)(&format!("{method} {path} -> {} in {millis} ms{key}", reply.status.as_u16()), false);
        if let Some(body) = &request.body {
            (self.observer)(&format!("> {}", redact_secrets(path, body)), true);
        }
        let body = without_keys(&String::from_utf8_lossy(&reply.body));
        (self.observer)(&format!("< {}", redact_secrets(path, &body)), true);
    }
}

/// Redacts the text of each new API key in the body of a response.
fn without_keys(body: &str) -> String {
    let mut pieces = body.split("fk_");
    let start = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(start, |text, piece| {
        let length = piece.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(piece.len());
        let (key, rest) = piece.split_at(length);
        let shown = if length == KEY_CHARS { redacted(&format!("fk_{key}")) } else { format!("fk_{key}") };
        text + &shown + rest
    })
}

/// Characters of an API key after `fk_`.
const KEY_CHARS: usize = 44;

fn is_retryable(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || status.is_server_error()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
