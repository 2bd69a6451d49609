//! The API as functions: one method per operation, over HTTP or straight into a router in the same process.
//!
//! Requests that may be repeated are: every POST carries an idempotency key that its repetitions share.

mod exchange;
mod pages;
mod query;
mod received;
mod transport;

use std::fmt;
use std::time::Duration;

use reqwest::header::ETAG;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::api::{
    Code, FormCreated, FormDetail, FormEntry, Problem, SubmissionBody, SubmissionDetail, Whoami,
};
use crate::id::Random;
use crate::secret::Secret;

pub use reqwest::Url;

pub use pages::{MAX_PAGE, Pages};
pub use query::{FormQuery, SubmissionQuery};
pub use received::Received;
pub use transport::Transport;

use exchange::Request;
use received::unreadable;

/// Why an operation gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no.
    #[error("{}", .0.title)]
    Problem(Box<Problem>),
    /// No answer came, however often it was tried. If the request `was_sent`, a server may have received it.
    #[error("no answer from {url}: {why}")]
    Unreachable { url: String, why: String, tries: u32, after: Duration, was_sent: bool },
    /// The answer to a request that changes something was lost: it may have been carried out. `path` has its query.
    #[error("{error}")]
    Unsure { error: Box<ClientError>, path: String },
    /// A refusal came without a problem document, as proxies send it.
    #[error("{url} answered {status} {reason}, without a problem document")]
    WithoutProblem { url: String, status: u16, reason: &'static str },
    /// An answer came that no forms server gives.
    #[error("{url} does not answer like a forms server: {what}")]
    Unexpected { url: String, what: String },
}

/// How long to wait for an answer and how often to try.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From the first try to the end of the last answer.
    pub timeout: Duration,
    /// Tries after the first.
    pub retries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), retries: 2 }
    }
}

/// Hears of every request: its line, then its answer's status and time; `true` marks bodies.
pub type Observer = Box<dyn Fn(&str, bool)>;

/// A server, or a router in this process, and the key to it.
pub struct Client {
    transport: Transport,
    key: Option<Secret<String>>,
    patience: Patience,
    random: Box<dyn Random>,
    observer: Observer,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// A state of a form, which each change of it ends: so that nobody overwrites what they have not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

impl ClientError {
    /// What the server said, if it said something.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::Unsure { error, .. } => error.problem(),
            Self::Unreachable { .. } | Self::WithoutProblem { .. } | Self::Unexpected { .. } => None,
        }
    }

    /// The HTTP status of the refusal, if one came.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            Self::WithoutProblem { status, .. } => Some(*status),
            Self::Unsure { error, .. } => error.status(),
            Self::Unreachable { .. } | Self::Unexpected { .. } => None,
        }
    }
}

impl Client {
    /// A client that sends `key`, if there is one, and draws idempotency keys from `random`.
    pub fn new(
        transport: Transport,
        key: Option<Secret<String>>,
        patience: Patience,
        random: Box<dyn Random>,
    ) -> Self {
        Self { transport, key, patience, random, observer: Box::new(|_, _| {}) }
    }

    /// The same, telling `observer` of every request.
    #[must_use]
    pub fn observed(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Creates a form from its definition in JSON. A `dry_run` only checks: the form as it would be, with an id of zeros.
    pub async fn create_form(
        &self,
        definition: &str,
        dry_run: bool,
    ) -> Result<Received<FormCreated>, ClientError> {
        self.call(Request::post("/api/v1/forms").flag("dry_run", dry_run).body(definition)).await
    }

    /// The workspace's forms, newest first, `page` at a time.
    pub fn list_forms(&self, query: &FormQuery<'_>, page: usize) -> Pages<'_, Received<FormEntry>> {
        let read = |client: &Self, body: &[u8]| Ok(client.decode::<Forms>(body)?.forms);
        Pages::new(self, format!("/api/v1/forms?{}", query.parameters(page)), read)
    }

    /// One form.
    pub async fn get_form(&self, form: &str) -> Result<Received<FormDetail>, ClientError> {
        self.call(Request::get(form_path(form)?)).await
    }

    /// One form, and which revision of it that is.
    pub async fn get_revision(&self, form: &str) -> Result<(Received<FormDetail>, Revision), ClientError> {
        let answer = self.send(&Request::get(form_path(form)?)).await?;
        let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.ok_or_else(|| self.unexpected("a form came without its revision".to_owned()))?;
        Ok((self.decode(&answer.body)?, Revision(tag.to_owned())))
    }

    /// Changes a form by a merge patch in JSON; where a revision is given, only if the form is still at it. A `dry_run`
    /// only checks: the form as it would be.
    pub async fn update_form(
        &self,
        form: &str,
        patch: &str,
        at: Option<&Revision>,
        dry_run: bool,
    ) -> Result<Received<FormDetail>, ClientError> {
        self.call(Request::patch(form_path(form)?).flag("dry_run", dry_run).body(patch).at(at)).await
    }

    /// Moves a form to the trash, or erases it. That it is gone after a lost answer is success too.
    pub async fn delete_form(&self, form: &str, purge: bool) -> Result<(), ClientError> {
        self.send(&Request::delete(form_path(form)?).flag("purge", purge)).await.map(drop)
    }

    /// Takes a form out of the trash again.
    pub async fn restore_form(&self, form: &str) -> Result<Received<FormDetail>, ClientError> {
        self.call(Request::post(form_path(form)? + "/restore")).await
    }

    /// Sends a submission: its body in JSON. A `dry_run` only checks.
    pub async fn create_submission(
        &self,
        form: &str,
        body: &str,
        dry_run: bool,
    ) -> Result<Received<SubmissionBody>, ClientError> {
        let path = form_path(form)? + "/submissions";
        self.call(Request::post(path).flag("dry_run", dry_run).body(body)).await
    }

    /// The form's submissions, newest first, `page` at a time.
    pub fn list_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
        page: usize,
    ) -> Result<Pages<'_, Received<SubmissionDetail>>, ClientError> {
        let read = |client: &Self, body: &[u8]| Ok(client.decode::<Submissions>(body)?.submissions);
        let first = format!("{}/submissions?{}", form_path(form)?, query.parameters(page));
        Ok(Pages::new(self, first, read))
    }

    /// How many of the form's submissions match; `None` if the server gave up counting.
    pub async fn count_submissions(
        &self,
        form: &str,
        query: &SubmissionQuery,
    ) -> Result<Option<u64>, ClientError> {
        let path = format!("{}/submissions?{}&count=true", form_path(form)?, query.parameters(1));
        Ok(self.call::<Count>(Request::get(path)).await?.total)
    }

    /// Moves a submission to the trash, or erases it. That it is gone after a lost answer is success too.
    pub async fn delete_submission(&self, form: &str, id: &str, purge: bool) -> Result<(), ClientError> {
        self.send(&Request::delete(submission_path(form, id)?).flag("purge", purge)).await.map(drop)
    }

    /// Takes a submission out of the trash again.
    pub async fn restore_submission(
        &self,
        form: &str,
        id: &str,
    ) -> Result<Received<SubmissionDetail>, ClientError> {
        self.call(Request::post(submission_path(form, id)? + "/restore")).await
    }

    /// One submission.
    pub async fn get_submission(
        &self,
        form: &str,
        id: &str,
    ) -> Result<Received<SubmissionDetail>, ClientError> {
        self.call(Request::get(submission_path(form, id)?)).await
    }

    /// Who the key's owner is.
    pub async fn whoami(&self) -> Result<Whoami, ClientError> {
        self.call(Request::get("/api/v1/whoami")).await
    }

    /// Sends the request and decodes the body of its answer.
    async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, ClientError> {
        self.decode(&self.send(&request).await?.body)
    }

    fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| self.unexpected(unreadable(&error).to_owned()))
    }

    fn unexpected(&self, what: String) -> ClientError {
        ClientError::Unexpected { url: self.transport.address().to_owned(), what }
    }
}

/// A page of forms.
#[derive(Deserialize)]
struct Forms {
    forms: Vec<Received<FormEntry>>,
}

/// A page of submissions.
#[derive(Deserialize)]
struct Submissions {
    submissions: Vec<Received<SubmissionDetail>>,
}

/// A page of a list that was counted.
#[derive(Deserialize)]
struct Count {
    total: Option<u64>,
}

/// What may be shown of an API key.
pub fn redacted(key: &str) -> String {
    let end = key.get(key.len().saturating_sub(4)..).filter(|_| key.len() >= 24).unwrap_or_default();
    format!("fk_…{end}")
}

/// The path of a form that is called `form`.
fn form_path(form: &str) -> Result<String, ClientError> {
    check_name(form, Code::FormNotFound, "form")?;
    Ok(format!("/api/v1/forms/{form}"))
}

fn submission_path(form: &str, id: &str) -> Result<String, ClientError> {
    let form = form_path(form)?;
    check_name(id, Code::SubmissionNotFound, "submission")?;
    Ok(format!("{form}/submissions/{id}"))
}

/// Answers as a server would that nothing is called `name`, if ids and slugs are not written so. It is not asked: `..` and
/// `a/b`, even percent-encoded, would lead to something else.
fn check_name(name: &str, code: Code, what: &str) -> Result<(), ClientError> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(ClientError::Problem(Box::new(Problem::new(code).detail(format!("no {what} `{name}`")))))
}
