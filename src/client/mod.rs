//! Client of the API: one method per operation, over HTTP or by calling a router in the same process.
//!
//! Every POST carries an idempotency key, which all its retries share.

mod deliveries;
mod exchange;
mod integrations;
mod keys;
mod pages;
mod query;
mod received_body;
mod redaction;
mod transport;

use std::fmt;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::ETAG;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::api::{
    Code, FormCreated, FormDetail, FormEntry, Problem, SubmissionBody, SubmissionDetail, Whoami,
};
use crate::id::Random;
use crate::secret::Secret;

pub use reqwest::Url;

pub use pages::{MAX_PAGE, Pages};
pub use query::{DeliverySelection, FormQuery, SubmissionQuery};
pub use received_body::ReceivedBody;
pub use transport::Transport;

use exchange::Request;
use received_body::unreadable;

/// Errors of a client operation.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{}", .0.title)]
    Problem(Box<Problem>),
    /// No attempt was answered. If `was_sent`, the server may have received the request.
    #[error("no answer from {url}: {why}")]
    Unreachable { url: String, why: String, tries: u32, after: Duration, was_sent: bool },
    /// The server's certificate is not trusted, so nothing was sent.
    #[error("the certificate of {url} is not trusted: {why}")]
    Untrusted { url: String, why: &'static str },
    /// The response to a change was lost: the change may have been applied. `path` includes the query.
    #[error("{error}")]
    MaybeApplied { error: Box<ClientError>, path: String },
    /// An error without a problem document, as proxies send it.
    #[error("{url} answered {status} {reason}, without a problem document")]
    WithoutProblem { url: String, status: u16, reason: &'static str },
    /// A response that no forms server sends.
    #[error("{url} does not answer like a forms server: {message}")]
    Unexpected { url: String, message: String },
}

/// Timeout and number of retries.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Total time, from the first attempt to the end of the last response.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), retries: 2 }
    }
}

/// Receives one line per request, then the status and duration of the response; `true` marks bodies.
pub type Observer = Box<dyn Fn(&str, bool)>;

/// Client for one server, or one router in this process, with an API key.
pub struct Client {
    transport: Transport,
    key: Option<Secret<String>>,
    retry_policy: RetryPolicy,
    random: Box<dyn Random>,
    observer: Observer,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// Entity tag of a form, for updates that must not overwrite changes of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

impl ClientError {
    /// Returns the problem document that the server sent, if any.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::MaybeApplied { error, .. } => error.problem(),
            Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::WithoutProblem { .. }
            | Self::Unexpected { .. } => None,
        }
    }

    /// Returns the HTTP status of the error response, if one came.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            Self::WithoutProblem { status, .. } => Some(*status),
            Self::MaybeApplied { error, .. } => error.status(),
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Unexpected { .. } => None,
        }
    }
}

impl Client {
    /// Creates a client that sends `key`, if given, and takes idempotency keys from `random`.
    pub fn new(
        transport: Transport,
        key: Option<Secret<String>>,
        retry_policy: RetryPolicy,
        random: Box<dyn Random>,
    ) -> Self {
        Self { transport, key, retry_policy, random, observer: Box::new(|_, _| {}) }
    }

    #[must_use]
    pub fn with_observer(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Creates a form from its definition in JSON. A `dry_run` only validates, and returns the form with an id of
    /// zeros.
    pub async fn create_form(
        &self,
        definition: &str,
        dry_run: bool,
    ) -> Result<ReceivedBody<FormCreated>, ClientError> {
        self.call(Request::post("/api/v1/forms").flag("dry_run", dry_run).body(definition)).await
    }

    /// Lists the forms of the workspace, newest first, `page` at a time.
    pub fn list_forms(&self, query: &FormQuery<'_>, page: usize) -> Pages<'_, ReceivedBody<FormEntry>> {
        let read = |client: &Self, body: &[u8]| Ok(client.decode::<FormPage>(body)?.forms);
        Pages::new(self, &format!("/api/v1/forms?{}", query.parameters(page)), read)
    }

    pub async fn get_form(&self, form: &str) -> Result<ReceivedBody<FormDetail>, ClientError> {
        self.call(Request::get(form_path(form)?)).await
    }

    pub async fn get_revision(
        &self,
        form: &str,
    ) -> Result<(ReceivedBody<FormDetail>, Revision), ClientError> {
        let answer = self.send(&Request::get(form_path(form)?)).await?;
        let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.ok_or_else(|| self.unexpected("a form came without its revision".to_owned()))?;
        Ok((self.decode(&answer.body)?, Revision(tag.to_owned())))
    }

    /// Updates a form by a JSON merge patch; with a revision, only if it is still the current one. A `dry_run` only
    /// validates, and returns the form as it would become.
    pub async fn update_form(
        &self,
        form: &str,
        patch: &str,
        at: Option<&Revision>,
        dry_run: bool,
    ) -> Result<ReceivedBody<FormDetail>, ClientError> {
        self.call(Request::new(Method::PATCH, form_path(form)?).flag("dry_run", dry_run).body(patch).at(at))
            .await
    }

    /// Moves a form to the trash, or erases it. After a lost response, 404 counts as success.
    pub async fn delete_form(&self, form: &str, purge: bool) -> Result<(), ClientError> {
        self.send(&Request::new(Method::DELETE, form_path(form)?).flag("purge", purge)).await.map(drop)
    }

    pub async fn restore_form(&self, form: &str) -> Result<ReceivedBody<FormDetail>, ClientError> {
        self.call(Request::post(form_path(form)? + "/restore")).await
    }

    /// Creates a submission from a body in JSON. A `dry_run` only validates. Without `notify`, the form's integrations are not
    /// notified.
    pub async fn create_submission(
        &self,
        form: &str,
        body: &str,
        dry_run: bool,
        notify: bool,
    ) -> Result<ReceivedBody<SubmissionBody>, ClientError> {
        let request = Request::post(form_path(form)? + "/submissions").flag("dry_run", dry_run);
        let request = if notify { request } else { request.parameter("notify", "false") };
        self.call(request.body(body)).await
    }

    /// Lists the submissions of a form, newest first, `page` at a time.
    pub fn list_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
        page: usize,
    ) -> Result<Pages<'_, ReceivedBody<SubmissionDetail>>, ClientError> {
        let read = |client: &Self, body: &[u8]| Ok(client.decode::<SubmissionPage>(body)?.submissions);
        let first = format!("{}/submissions?{}", form_path(form)?, query.parameters(page));
        Ok(Pages::new(self, &first, read))
    }

    /// Counts the matching submissions of a form; `None` if the server gave up counting.
    pub async fn count_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
    ) -> Result<Option<u64>, ClientError> {
        let path = format!("{}/submissions?{}&count=true", form_path(form)?, query.parameters(1));
        Ok(self.call::<CountedPage>(Request::get(path)).await?.total)
    }

    /// Moves a submission to the trash, or erases it. After a lost response, 404 counts as success.
    pub async fn delete_submission(&self, form: &str, id: &str, purge: bool) -> Result<(), ClientError> {
        self.send(&Request::new(Method::DELETE, submission_path(form, id)?).flag("purge", purge))
            .await
            .map(drop)
    }

    pub async fn restore_submission(
        &self,
        form: &str,
        id: &str,
    ) -> Result<ReceivedBody<SubmissionDetail>, ClientError> {
        self.call(Request::post(submission_path(form, id)? + "/restore")).await
    }

    pub async fn get_submission(
        &self,
        form: &str,
        id: &str,
    ) -> Result<ReceivedBody<SubmissionDetail>, ClientError> {
        self.call(Request::get(submission_path(form, id)?)).await
    }

    pub async fn whoami(&self) -> Result<Whoami, ClientError> {
        self.call(Request::get("/api/v1/whoami")).await
    }

    async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, ClientError> {
        self.decode(&self.send(&request).await?.body)
    }

    fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| self.unexpected(unreadable(&error).to_owned()))
    }

    fn unexpected(&self, message: String) -> ClientError {
        ClientError::Unexpected { url: self.transport.address().to_owned(), message }
    }
}

#[derive(Deserialize)]
struct FormPage {
    forms: Vec<ReceivedBody<FormEntry>>,
}

#[derive(Deserialize)]
struct SubmissionPage {
    submissions: Vec<ReceivedBody<SubmissionDetail>>,
}

#[derive(Deserialize)]
struct CountedPage {
    total: Option<u64>,
}

fn to_json(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("a request of texts can be written as JSON")
}

/// Redacts an API key to its prefix and its last four characters.
pub fn redacted(key: &str) -> String {
    let end = key.get(key.len().saturating_sub(4)..).filter(|_| key.len() >= 24).unwrap_or_default();
    format!("fk_…{end}")
}

/// Returns the path of `form`, an id or a slug.
fn form_path(form: &str) -> Result<String, ClientError> {
    check_name(form, Code::FormNotFound, "form")?;
    Ok(format!("/api/v1/forms/{form}"))
}

fn submission_path(form: &str, id: &str) -> Result<String, ClientError> {
    let form = form_path(form)?;
    check_name(id, Code::SubmissionNotFound, "submission")?;
    Ok(format!("{form}/submissions/{id}"))
}

/// Returns the error of a missing resource if `name` is neither an id nor a slug. The server is not asked: `..` and
/// `a/b`, even percent-encoded, would address something else.
fn check_name(name: &str, code: Code, noun: &str) -> Result<(), ClientError> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(ClientError::Problem(Box::new(Problem::new(code).detail(format!("no {noun} `{name}`")))))
}
