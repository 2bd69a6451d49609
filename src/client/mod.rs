//! Client of the API: one method per operation, over HTTP or by calling a router in the same process.
//!
//! Every POST carries an idempotency key, which all its retries share; a new secret is lost with the response that has it. A
//! DELETE has succeeded if its retry, after a lost response, finds nothing.

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

use reqwest::header::ETAG;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::api::{
    Code, FormCreated, FormDetail, FormEntry, Problem, SubmissionBody, SubmissionDetail, VersionView, Whoami,
};
use crate::id::Random;
use crate::secret::Secret;

pub use reqwest::Url;

pub use pages::{MAX_PAGE, Pages};
pub use query::{DeliverySelection, FormQuery, SubmissionQuery};
pub use received_body::ReceivedBody;
pub use transport::{Transport, has_certificate};

use exchange::Request;

/// Errors of a client operation.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{}", .0.title)]
    Problem(Box<Problem>),
    /// No attempt was answered. If `was_sent`, the server may have received the request.
    #[error("{} {url} ({why})", if *was_sent { "no response from" } else { "no server responds at" })]
    Unreachable { url: String, why: String, was_sent: bool },
    /// The server's certificate is not trusted, so nothing was sent.
    #[error("the certificate of {url} is not trusted: {why}")]
    Untrusted { url: String, why: &'static str },
    /// The address begins with `https`, but its server does not use TLS: `url` begins with `http`.
    #[error("the server speaks plain HTTP: use {url}")]
    PlainHttp { url: String },
    /// The response to a change was lost: the change may have been applied. `path` includes the query.
    #[error("{error}")]
    MaybeApplied { error: Box<ClientError>, path: String },
    /// A response that no forms server sends: of another server, or of a proxy.
    #[error("{url} {message}")]
    Unexpected { url: String, message: String },
}

/// Result of a client operation.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Timeout and number of retries.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Total time, from the first attempt to the end of the last response.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
}

/// Receives one line per request, then the status and duration of the response; `true` marks bodies.
pub type Observer = Box<dyn Fn(&str, bool)>;

/// Client for one server, or one router in this process, with an API key.
pub struct Client {
    transport: Transport,
    key: Option<Secret<String>>,
    retry_policy: RetryPolicy,
    random: Box<dyn Random>,
    observer: Option<Observer>,
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
            _ => None,
        }
    }

    /// Returns the HTTP status of the problem document, if one came.
    pub fn status(&self) -> Option<u16> {
        self.problem().map(|problem| problem.status)
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
        Self { transport, key, retry_policy, random, observer: None }
    }

    #[must_use]
    pub fn with_observer(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Creates a form from its definition in JSON. A `dry_run` only validates, and returns the form with an id of
    /// zeros.
    pub async fn create_form(&self, definition: &str, dry_run: bool) -> Result<ReceivedBody<FormCreated>> {
        self.call(Request::post(FORMS).parameter("dry_run=true", dry_run).body(definition)).await
    }

    /// Lists the forms of the workspace, newest first, `page` at a time.
    pub fn list_forms(&self, query: &FormQuery<'_>, page: usize) -> Pages<'_, ReceivedBody<FormEntry>> {
        Pages::new(self, FORMS.to_owned(), query::parameters(query, page), "forms")
    }

    pub async fn get_form(&self, form: &str) -> Result<ReceivedBody<FormDetail>> {
        self.call(Request::get(form_path(form)?)).await
    }

    /// Lists the versions of the form's questions, newest first.
    pub fn list_versions(&self, form: &str) -> Result<Pages<'_, VersionView>> {
        let path = format!("{}/versions", form_path(form)?);
        Ok(Pages::new(self, path, format!("limit={MAX_PAGE}"), "versions"))
    }

    pub async fn get_revision(&self, form: &str) -> Result<(ReceivedBody<FormDetail>, Revision)> {
        let answer = self.send(&Request::get(form_path(form)?)).await?;
        let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.ok_or_else(|| self.foreign("a form came without its revision"))?;
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
    ) -> Result<ReceivedBody<FormDetail>> {
        self.call(Request::patch(form_path(form)?).parameter("dry_run=true", dry_run).body(patch).at(at))
            .await
    }

    /// Moves a form to the trash, or erases it.
    pub async fn delete_form(&self, form: &str, purge: bool) -> Result<()> {
        self.send(&Request::delete(form_path(form)?).parameter("purge=true", purge)).await.map(drop)
    }

    pub async fn restore_form(&self, form: &str) -> Result<ReceivedBody<FormDetail>> {
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
    ) -> Result<ReceivedBody<SubmissionBody>> {
        let request = Request::post(form_path(form)? + "/submissions").body(body);
        self.call(request.parameter("dry_run=true", dry_run).parameter("notify=false", !notify)).await
    }

    /// Lists the submissions of a form, newest first, `page` at a time.
    pub fn list_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
        page: usize,
    ) -> Result<Pages<'_, ReceivedBody<SubmissionDetail>>> {
        let path = form_path(form)? + "/submissions";
        Ok(Pages::new(self, path, query.parameters(page), "submissions"))
    }

    /// Counts the matching submissions of a form; `None` if the server gave up counting.
    pub async fn count_submissions(&self, form: &str, query: &SubmissionQuery) -> Result<Option<u64>> {
        let path = format!("{}/submissions?{}&count=true", form_path(form)?, query.parameters(1));
        Ok(self.call::<CountedPage>(Request::get(path)).await?.total)
    }

    /// Moves a submission to the trash, or erases it.
    pub async fn delete_submission(&self, form: &str, id: &str, purge: bool) -> Result<()> {
        self.send(&Request::delete(submission_path(form, id)?).parameter("purge=true", purge)).await.map(drop)
    }

    pub async fn restore_submission(&self, form: &str, id: &str) -> Result<ReceivedBody<SubmissionDetail>> {
        self.call(Request::post(submission_path(form, id)? + "/restore")).await
    }

    pub async fn get_submission(&self, form: &str, id: &str) -> Result<ReceivedBody<SubmissionDetail>> {
        self.call(Request::get(submission_path(form, id)?)).await
    }

    pub async fn whoami(&self) -> Result<Whoami> {
        self.call(Request::get("/api/v1/whoami")).await
    }

    async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T> {
        self.decode(&self.send(&request).await?.body)
    }

    fn decode<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T> {
        serde_json::from_slice(body).map_err(|error| match error.classify() {
            _ if error.to_string().contains("recursion limit") => {
                self.foreign("its answer is nested too deeply")
            }
            Category::Data => self.unexpected(
                "is not a forms server of a known version: its answer lacks a field, or has one of another type",
            ),
            Category::Syntax | Category::Eof | Category::Io => self.foreign("its answer is not JSON"),
        })
    }

    /// Returns the error for a response by another server.
    fn foreign(&self, why: impl fmt::Display) -> ClientError {
        self.unexpected(format!("is not a forms server: {why}"))
    }

    fn unexpected(&self, message: impl Into<String>) -> ClientError {
        ClientError::Unexpected { url: self.transport.address().to_owned(), message: message.into() }
    }
}

#[derive(Deserialize)]
struct CountedPage {
    total: Option<u64>,
}

/// Redacts an API key to its prefix and its last four characters.
pub fn redacted(key: &str) -> String {
    let end = key.get(key.len().saturating_sub(4)..).filter(|_| key.len() >= 24).unwrap_or_default();
    format!("fk_…{end}")
}

const FORMS: &str = "/api/v1/forms";

/// Returns the path of `form`, an id or a slug.
fn form_path(form: &str) -> Result<String> {
    join(FORMS, Code::FormNotFound, "form", form)
}

fn submission_path(form: &str, id: &str) -> Result<String> {
    join(&(form_path(form)? + "/submissions"), Code::SubmissionNotFound, "submission", id)
}

/// Returns the path of a member of the list at `path`, or the error that there is none if `name` is neither an id nor a
/// slug. The server is not asked: `..` and `a/b`, even percent-encoded, would address something else.
fn join(path: &str, missing: Code, noun: &str, name: &str) -> Result<String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(is_fine) {
        return Ok(format!("{path}/{name}"));
    }
    Err(ClientError::Problem(Box::new(Problem::new(missing).detail(format!("no {noun} `{name}`")))))
}
