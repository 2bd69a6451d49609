//! Client of the API, over HTTP or by calling a router in the same process: a method for each verb, and one for each operation
//! with parameters of its own.
//!
//! Every POST carries an idempotency key, which all its retries share; a new secret is lost with the response that has it. A
//! DELETE has succeeded if its retry, after a lost response, finds nothing.

mod download;
mod exchange;
mod pages;
mod query;
mod received_body;
mod redaction;
mod server_state;
mod transport;

use std::fmt;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::ETAG;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::api::{
    BatchResults, Code, DeliveryCount, DeliveryDetail, Erasure, FormCreated, FormDetail, FormEntry,
    FormSummary, Problem, ReplacedView, SubmissionBody, SubmissionDetail, VersionView, Whoami,
};
use crate::id::Random;
use crate::secret::Secret;

pub use reqwest::Url;

pub use download::{Download, SubmissionStream};
pub use pages::{MAX_PAGE, Pages};
pub use query::{FormQuery, SubmissionQuery};
pub use received_body::ReceivedBody;
pub use server_state::ServerState;
pub use transport::{Transport, has_certificate};

use exchange::Request;
use query::members;

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

/// Result of an operation whose response has a body.
pub type Received<T> = Result<ReceivedBody<T>>;

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

    /// Returns what is at `path`: the name of a list, the id or name of one of its members, a list of that member, and so on.
    pub async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Received<T> {
        self.call(Request::new(Method::GET, join(path)?)).await
    }

    /// Returns the body at `path` as it was received.
    pub async fn get_bytes(&self, path: &[&str]) -> Result<Vec<u8>> {
        Ok(self.send(&Request::new(Method::GET, join(path)?)).await?.body)
    }

    /// Returns the list at `path`, all of which is in the `member` of its body.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        member: &str,
    ) -> Result<Vec<ReceivedBody<T>>> {
        self.items(&self.get_bytes(path).await?, member)
    }

    /// Creates a member of a list from `body`, or acts on a member with `body`.
    pub async fn post<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> Received<T> {
        self.call(Request::new(Method::POST, join(path)?).json(body)).await
    }

    /// Carries out the action that ends `path`, which needs no body.
    pub async fn act<T: DeserializeOwned>(&self, path: &[&str]) -> Received<T> {
        self.call(Request::new(Method::POST, join(path)?)).await
    }

    /// Updates what is at `path` by a JSON merge patch.
    pub async fn patch<T: DeserializeOwned>(&self, path: &[&str], patch: &impl Serialize) -> Received<T> {
        self.call(Request::new(Method::PATCH, join(path)?).json(patch)).await
    }

    /// Updates a submission by a JSON merge patch, if `at` is still its revision.
    pub async fn edit_submission(
        &self,
        form: &str,
        submission: &str,
        patch: &str,
        at: &Revision,
    ) -> Received<SubmissionDetail> {
        let path = join(&["forms", form, "submissions", submission])?;
        self.call(Request::new(Method::PATCH, path).body(patch).at(Some(at))).await
    }

    /// Lists the states of a submission that edits have replaced, newest first, `page` at a time.
    pub fn list_history(
        &self,
        form: &str,
        submission: &str,
        page: usize,
    ) -> Result<Pages<'_, ReceivedBody<ReplacedView>>> {
        let path = join(&["forms", form, "submissions", submission, "history"])?;
        Ok(Pages::new(self, path, format!("limit={page}"), "history"))
    }

    /// Deletes what is at `path`: a form or submission into the trash, unless `purge` is set.
    pub async fn delete(&self, path: &[&str], purge: bool) -> Result<()> {
        self.send(&Request::new(Method::DELETE, join(path)?).parameter("purge=true", purge)).await.map(drop)
    }

    /// Creates a form from its definition in JSON. A `dry_run` only validates, and returns the form with an id of
    /// zeros.
    pub async fn create_form(&self, definition: &str, dry_run: bool) -> Received<FormCreated> {
        self.call(
            Request::new(Method::POST, join(&["forms"])?).parameter("dry_run=true", dry_run).body(definition),
        )
        .await
    }

    /// Lists the forms of the workspace, newest first, `page` at a time.
    pub fn list_forms(&self, query: &FormQuery<'_>, page: usize) -> Pages<'_, ReceivedBody<FormEntry>> {
        Pages::new(self, format!("{API}forms"), query::parameters(query, page), "forms")
    }

    pub async fn get_form(&self, form: &str) -> Received<FormDetail> {
        self.get(&["forms", form]).await
    }

    /// Returns the JSON Schema of the form's answers.
    pub async fn get_schema(&self, form: &str) -> Received<serde_json::Value> {
        self.get(&["forms", form, "schema"]).await
    }

    /// Lists the versions of the form's questions, newest first.
    pub fn list_versions(&self, form: &str) -> Result<Pages<'_, VersionView>> {
        let path = join(&["forms", form, "versions"])?;
        Ok(Pages::new(self, path, format!("limit={MAX_PAGE}"), "versions"))
    }

    /// Returns the form or submission at `path` with its revision.
    pub async fn get_revision<T: DeserializeOwned>(
        &self,
        path: &[&str],
    ) -> Result<(ReceivedBody<T>, Revision)> {
        let answer = self.send(&Request::new(Method::GET, join(path)?)).await?;
        let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.ok_or_else(|| self.foreign("its answer has no revision"))?;
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
    ) -> Received<FormDetail> {
        let request = Request::new(Method::PATCH, join(&["forms", form])?).body(patch).at(at);
        self.call(request.parameter("dry_run=true", dry_run)).await
    }

    /// Creates a submission from a body in JSON. A `dry_run` only validates. Without `notify`, the form's integrations are not
    /// notified.
    pub async fn create_submission(
        &self,
        form: &str,
        body: &str,
        dry_run: bool,
        notify: bool,
    ) -> Received<SubmissionBody> {
        let request = Request::new(Method::POST, join(&["forms", form, "submissions"])?).body(body);
        self.call(request.parameter("dry_run=true", dry_run).parameter("notify=false", !notify)).await
    }

    /// Creates submissions from a batch in JSON. Also returns whether an earlier request with this `idempotency_key` did.
    pub async fn create_submissions(
        &self,
        form: &str,
        body: String,
        idempotency_key: String,
        dry_run: bool,
        notify: bool,
    ) -> Result<(BatchResults, bool)> {
        let request =
            Request::new(Method::POST, join(&["forms", form, "submissions"])? + ":batch").body(body);
        let request = request.parameter("dry_run=true", dry_run).parameter("notify=false", !notify);
        let answer = self.send(&request.idempotency_key(idempotency_key)).await?;
        Ok((self.decode(&answer.body)?, answer.headers.contains_key("idempotency-replayed")))
    }

    /// Erases the submissions of a form that match `query` in any state; a `dry_run` only finds them.
    pub async fn erase_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
        dry_run: bool,
    ) -> Result<Erasure> {
        let path = join(&["forms", form, "submissions"])?;
        let request = Request::new(Method::POST, format!("{path}:erase?{}", query.what()));
        self.call(request.parameter("dry_run=true", dry_run)).await
    }

    /// Lists the submissions of a form, newest first, `page` at a time.
    pub fn list_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
        page: usize,
    ) -> Result<Pages<'_, ReceivedBody<SubmissionDetail>>> {
        let path = join(&["forms", form, "submissions"])?;
        Ok(Pages::new(self, path, query.parameters(page), "submissions"))
    }

    /// Returns the summary of the matching submissions of a form.
    pub async fn get_summary(&self, form: &str, query: &SubmissionQuery) -> Received<FormSummary> {
        let path = join(&["forms", form, "summary"])?;
        self.call(Request::new(Method::GET, format!("{path}?{}", query.filter()))).await
    }

    /// Counts the matching submissions of a form; `None` if the server gave up counting.
    pub async fn count_submissions(&self, form: &str, query: &SubmissionQuery) -> Result<Option<u64>> {
        let path = join(&["forms", form, "submissions"])?;
        let request = Request::new(Method::GET, format!("{path}?{}&count=true", query.parameters(1)));
        Ok(self.call::<CountedPage>(request).await?.total)
    }

    /// Lists deliveries, newest event first, `page` at a time.
    pub fn list_deliveries(
        &self,
        query: &impl Serialize,
        page: usize,
    ) -> Pages<'_, ReceivedBody<DeliveryDetail>> {
        Pages::new(self, format!("{API}deliveries"), query::parameters(query, page), "deliveries")
    }

    /// Changes all deliveries of a selection: `redeliver` by default those that failed for good, `cancel` those that wait,
    /// which has no `rate`.
    pub async fn change_deliveries(
        &self,
        selection: &impl Serialize,
        action: &str,
    ) -> Received<DeliveryCount> {
        self.call(Request::new(Method::POST, format!("{API}deliveries:{action}")).json(&members(selection)))
            .await
    }

    pub async fn whoami(&self) -> Result<Whoami> {
        self.call(Request::new(Method::GET, join(&["whoami"])?)).await
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

const API: &str = "/api/v1/";

/// Returns the path of `steps`: the name of a list, the id or name of one of its members, a list of that member, and so on.
///
/// # Errors
/// If an id or name is one that nothing can have: the problem that the server would report.
fn join(steps: &[&str]) -> Result<String> {
    let missing = steps.chunks(2).find(|pair| matches!(pair, [list, name] if !is_name(list, name)));
    let Some([list, name]) = missing else { return Ok(API.to_owned() + &steps.join("/")) };
    let (code, noun) = match *list {
        "forms" => (Code::FormNotFound, "form"),
        "submissions" => (Code::SubmissionNotFound, "submission"),
        "integrations" => (Code::IntegrationNotFound, "integration"),
        "deliveries" => (Code::DeliveryNotFound, "delivery"),
        "keys" => (Code::KeyNotFound, "key"),
        _ => (Code::WorkspaceNotFound, "workspace"),
    };
    Err(ClientError::Problem(Box::new(Problem::new(code).detail(format!("no {noun} `{name}`")))))
}

/// Whether `name` may be an id or a name in `list`: `..` and `a/b`, even percent-encoded, would address something else, as does
/// `deliveries/stats`.
fn is_name(list: &str, name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.bytes().all(is_fine) && (list, name) != ("deliveries", "stats")
}
