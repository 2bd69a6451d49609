//! One exchange with the server: a request, sent again as long as that may help, and the answer that says yes.

use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};

use super::transport::{MAX_ANSWER, Reply};
use super::{Client, ClientError, Revision, redacted};
use crate::api::Problem;

/// A request before it is sent.
pub(super) struct Request {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    pub(super) body: Option<String>,
    /// The revision that it is for, if for one alone.
    pub(super) at: Option<Revision>,
}

impl Request {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, at: None }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub(super) fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path)
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With this body in JSON.
    pub(super) fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    /// With the query parameter `name`, if it is set.
    pub(super) fn flag(mut self, name: &str, is_set: bool) -> Self {
        if is_set {
            self.path += &format!("?{name}=true");
        }
        self
    }

    /// For this revision alone, if there is one.
    pub(super) fn at(mut self, revision: Option<&Revision>) -> Self {
        self.at = revision.cloned();
        self
    }

    /// Whether carrying it out changes something.
    fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("?dry_run")
    }

    /// Whether carrying it out twice makes two things, were it not for an idempotency key.
    fn makes_something(&self) -> bool {
        self.method == Method::POST && self.is_write()
    }

    /// `error`, after which nobody knows what has become of the request.
    fn unsure(&self, error: ClientError) -> ClientError {
        match self.is_write() {
            true => ClientError::Unsure { error: Box::new(error), path: self.path.clone() },
            false => error,
        }
    }
}

/// An answer that says yes.
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// What an answer means.
enum Judged {
    Done(Answer),
    /// The same request may be answered otherwise after a while.
    NotNow {
        wait: Option<Duration>,
        error: ClientError,
    },
}

impl Client {
    /// Sends the request until it is answered, patience ends, or the answer is a no that repeating will not change.
    pub(super) async fn send(&self, request: &Request) -> Result<Answer, ClientError> {
        let started = Instant::now();
        let headers = self.headers(request);
        let mut maybe_done = false;
        for tries in 1.. {
            let left = self.patience.timeout.saturating_sub(started.elapsed());
            let (wait, error) = match self.transport.send(request, &headers, left).await {
                Ok(reply) => {
                    self.observe(request, &reply, started);
                    match self.judge(request, reply, maybe_done)? {
                        Judged::Done(answer) => return Ok(answer),
                        Judged::NotNow { wait, error } => {
                            // A proxy says nothing of what became of the request.
                            maybe_done |= matches!(error, ClientError::WithoutProblem { status: 500.., .. });
                            (wait, error)
                        }
                    }
                }
                Err(lost) => {
                    let Request { method, path, .. } = request;
                    (self.observer)(&format!("{method} {path} -> no answer: {}", lost.why), false);
                    maybe_done |= lost.maybe_done;
                    let url = self.transport.address().to_owned();
                    let (why, after) = (lost.why, started.elapsed());
                    (None, ClientError::Unreachable { url, why, tries, after, was_sent: maybe_done })
                }
            };
            let wait = wait.unwrap_or_else(|| self.pause(tries));
            if tries > self.patience.retries
                || started.elapsed().saturating_add(wait) >= self.patience.timeout
            {
                return Err(if maybe_done { request.unsure(error) } else { error });
            }
            tokio::time::sleep(wait).await;
        }
        unreachable!("counting tries never ends")
    }

    /// What an answer means. After an earlier one was lost, `maybe_done`, that a thing is gone is what deleting it
    /// was for.
    fn judge(&self, request: &Request, reply: Reply, maybe_done: bool) -> Result<Judged, ClientError> {
        let Reply { status, headers, body } = reply;
        if body.len() > MAX_ANSWER {
            let error = self.unexpected(format!("its answer has more than {} MiB", MAX_ANSWER >> 20));
            return Err(request.unsure(error));
        }
        let gone = request.method == Method::DELETE && status == StatusCode::NOT_FOUND;
        if status.is_success() || (maybe_done && gone) {
            return Ok(Judged::Done(Answer { headers, body }));
        }
        if let Some(elsewhere) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
            // The key is for the server that was named, and for no other.
            let elsewhere = String::from_utf8_lossy(elsewhere.as_bytes());
            return Err(self.unexpected(format!("it redirects to {elsewhere}")));
        }
        if status < StatusCode::BAD_REQUEST {
            return Err(self.unexpected(format!("it answered {status}")));
        }
        let error = self.refusal(request, status, &body);
        // The lost one may have been the change that this one now meets.
        if maybe_done && status == StatusCode::PRECONDITION_FAILED {
            return Err(request.unsure(error));
        }
        if may_pass(status) { Ok(Judged::NotNow { wait: retry_after(&headers), error }) } else { Err(error) }
    }

    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let mut headers = vec![("accept", "application/json".to_owned())];
        headers.extend(self.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal()))));
        if request.body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        headers.extend(request.at.iter().map(|Revision(tag)| ("if-match", tag.clone())));
        if request.makes_something() {
            headers.push(("idempotency-key", self.draw_key()));
        }
        headers
    }

    /// 128 random bits in hexadecimal.
    fn draw_key(&self) -> String {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        format!("{:032x}", u128::from_be_bytes(bytes))
    }

    /// How long to wait after the `tries`-th try: 200 ms doubled each time, and up to half as much again so that
    /// many clients do not come back at once.
    fn pause(&self, tries: u32) -> Duration {
        let base = 200u64 << (tries - 1).min(6);
        let mut byte = [0];
        self.random.fill(&mut byte);
        Duration::from_millis(base + base * u64::from(byte[0]) / 512)
    }

    /// The error that `body` describes. What counts is the status it came with.
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

    fn observe(&self, request: &Request, reply: &Reply, started: Instant) {
        let Request { method, path, .. } = request;
        let millis = started.elapsed().as_millis();
        let key = self.key.as_ref().map(|key| redacted(key.reveal()));
        let key = key.map(|key| format!(" (Authorization: Bearer {key})")).unwrap_or_default();
        (self.observer)(&format!("{method} {path} -> {} in {millis} ms{key}", reply.status.as_u16()), false);
        if let Some(body) = &request.body {
            (self.observer)(&format!("> {body}"), true);
        }
        (self.observer)(&format!("< {}", String::from_utf8_lossy(&reply.body)), true);
    }
}

/// Whether the same request may be answered otherwise a little later.
fn may_pass(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || status.is_server_error()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
