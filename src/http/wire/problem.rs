//! From what went wrong to a problem document: the one mapping, and the one place that logs a failure's cause.
#![deny(clippy::wildcard_enum_match_arm)]

use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::api::{Code, PROBLEM_TYPE, Problem};
use crate::app::{AppError, Resource};
use crate::domain::form::admission::{AcceptingReason, Refusal};
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation, shortened, unescape};
use crate::store::StoreError;

/// Why a request failed. It travels through the router inside a response, until the request's id joins it.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    problem: Box<Problem>,
    /// Seconds until another attempt makes sense.
    retry_after: Option<u64>,
    /// For the log alone.
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure of the kind `code`, without anything particular to say.
    pub(crate) fn new(code: Code) -> Self {
        Self { problem: Box::new(Problem::new(code)), retry_after: None, cause: None }
    }

    /// A failure of the kind `code`; `detail` names the thing and the remedy.
    pub(crate) fn because(code: Code, detail: impl Into<String>) -> Self {
        let mut failure = Self::new(code);
        failure.problem.detail = Some(detail.into());
        failure
    }

    /// The same, worth another attempt in `seconds`.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// There is no room for the request, or too much is queued: the same request may succeed in a moment.
    pub(crate) fn overloaded() -> Self {
        Self::new(Code::Overloaded).retry_after(1)
    }

    /// A handler panicked, with this text.
    pub(crate) fn panicked(text: String) -> Self {
        Self::new(Code::Internal).caused_by(std::io::Error::other(format!("panicked: {text}")))
    }

    fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }

    /// A form takes no answers; its author's own `message` says it better.
    fn shut(why: AcceptingReason, message: Option<String>) -> Self {
        let detail = match why {
            AcceptingReason::Draft => {
                "the form is a draft: publish it, by PATCH with `{\"status\":\"published\"}`"
            }
            AcceptingReason::Closed => "the form was closed and takes no answers",
            AcceptingReason::NotOpenYet => "the form takes no answers before `opens_at`",
            AcceptingReason::Expired => "the form takes no answers after `closes_at`",
            AcceptingReason::Full => "the form has as many submissions as `max_responses` allows",
        };
        Self::because(why.into(), message.unwrap_or_else(|| detail.to_owned()))
    }

    /// What was sent breaks rules; `detail` sums up the violations, of which the first are told.
    pub(crate) fn invalid(detail: String, mut violations: Vec<Violation>) -> Self {
        violations.truncate(MAX_VIOLATIONS);
        let mut failure = Self::because(Code::ValidationFailed, detail);
        failure.problem.errors = violations;
        failure
    }

    /// The query breaks rules: `violations` point into an object of its parameters.
    pub(crate) fn invalid_query(violations: Vec<Violation>) -> Self {
        let faults: Vec<_> = violations.iter().map(describe_parameter).collect();
        let mut failure = Self::because(Code::InvalidQuery, faults.join("; "));
        failure.problem.errors = violations;
        failure
    }

    /// The problem document for the request `request_id`. Logs what the server has to answer for.
    pub(crate) fn render(self, request_id: &str) -> Response {
        self.document(request_id).map(Body::from)
    }

    /// The same, with its body in bytes.
    pub(crate) fn document(mut self, request_id: &str) -> axum::http::Response<Vec<u8>> {
        self.log(request_id);
        self.problem.request_id = Some(request_id.to_owned());
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.problem).unwrap_or_default();
        let length = body.len();
        let mut response = axum::http::Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.problem.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    fn log(&self, request_id: &str) {
        // Neither is a failure of the server, and a line for each request would fill the log. The store reports once that it
        // has no room.
        if self.problem.status < 500
            || [Code::Overloaded, Code::StorageFull].iter().any(|code| self.problem.code == *code)
        {
            return;
        }
        let code = self.problem.code.to_string();
        let cause = self.cause.as_deref().map(chain).unwrap_or_default();
        if self.problem.code == Code::Internal {
            tracing::error!(request_id, code, cause, "a request failed");
        } else {
            tracing::warn!(request_id, code, cause, "a request could not be served");
        }
    }
}

/// An error and its sources, outermost first.
fn chain(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Unauthenticated => Self::new(Code::Unauthorized),
            AppError::Forbidden(scope) => {
                Self::because(Code::InsufficientScope, format!("this needs a key with the scope `{scope}`"))
            }
            AppError::NotFound(what) => {
                let code = match what {
                    Resource::Form(_) => Code::FormNotFound,
                    Resource::Submission(_) => Code::SubmissionNotFound,
                    Resource::Version(_) => Code::VersionNotFound,
                };
                Self::because(code, format!("no {what}"))
            }
            AppError::Malformed(error) => Self::because(Code::MalformedJson, error.to_string()),
            AppError::Refused(refusal) => refusal.into(),
            AppError::InvalidCursor => {
                Self::because(Code::InvalidCursor, "`cursor` was not given by this list; begin without it")
            }
            AppError::InvalidQuery(violations) => Self::invalid_query(violations),
            AppError::Overloaded => Self::overloaded(),
            AppError::Store(error) => error.into(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotAccepting { reason, message } => Self::shut(reason, message),
            Refusal::NoQuestions => Self::because(
                Code::FormHasNoQuestions,
                "add a question that takes an answer before publishing the form",
            ),
            Refusal::PreconditionFailed => {
                Self::because(Code::VersionMismatch, "it has changed since `If-Match` was read; get it again")
            }
            Refusal::SlugTaken { slug, holder } => {
                let message = format!("slug `{slug}` already belongs to {holder}");
                let mut failure = Self::because(Code::SlugTaken, message.clone());
                let violation = Violation::new("/slug", Rule::SlugTaken, message);
                failure.problem.errors =
                    vec![violation.help(format!("choose another slug, or change {holder}"))];
                failure.problem.form_id = Some(holder.to_string());
                failure
            }
            Refusal::NotInTrash => Self::because(Code::NotInTrash, "it is not in the trash"),
            Refusal::InvalidDefinition(violations) => {
                let detail = counted(violations.len(), ["problem", "problems"], "in the definition");
                Self::invalid(detail, violations)
            }
            Refusal::InvalidAnswers(violations) => Self::invalid(attention(&violations), violations),
            Refusal::KeyReused => Self::because(
                Code::IdempotencyKeyReused,
                "`Idempotency-Key` came before with another body or query; use a new one",
            ),
        }
    }
}

/// What is wrong with the parameter that `violation` points to.
fn describe_parameter(violation: &Violation) -> String {
    let mut steps = violation.pointer.split('/').skip(1).map(unescape);
    let name = steps.next().unwrap_or_default();
    let name = steps.fold(name, |name, step| format!("{name}[{step}]"));
    let help = violation.help.iter().map(|help| format!("; {help}")).collect::<String>();
    format!("`{}`: {}{help}", shortened(&name), violation.message)
}

/// How much is wrong with a submission.
fn attention(violations: &[Violation]) -> String {
    let count = violations.len();
    if !violations.iter().all(|violation| violation.pointer.starts_with("/answers/")) {
        return counted(count, ["problem", "problems"], "in the submission");
    }
    counted(count, ["answer", "answers"], if count == 1 { "needs attention" } else { "need attention" })
}

/// How many there are, as far as that is known: of very many, not all are looked for.
fn counted(count: usize, [one, several]: [&str; 2], predicate: &str) -> String {
    match count {
        1 => format!("1 {one} {predicate}"),
        ..=MAX_VIOLATIONS => format!("{count} {several} {predicate}"),
        _ => {
            format!("more than {MAX_VIOLATIONS} {several} {predicate}; the first {MAX_VIOLATIONS} are listed")
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = match error {
            StoreError::Busy => Self::new(Code::StoreUnavailable).retry_after(1),
            StoreError::Overloaded => Self::overloaded(),
            StoreError::Unavailable(_) => Self::new(Code::StoreUnavailable).retry_after(5),
            StoreError::Full => Self::new(Code::StorageFull).retry_after(30),
            // The index is being proved, and built anew if it must be: a little later the value may be whole again.
            StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::Undecodable(_) => {
                Self::new(Code::StoreUnavailable).retry_after(5)
            }
            StoreError::Panicked(_) | StoreError::Io(_) => Self::new(Code::Internal),
        };
        failure.caused_by(error)
    }
}

/// An answer could not be put together.
impl From<axum::Error> for Failure {
    fn from(error: axum::Error) -> Self {
        Self::new(Code::Internal).caused_by(error)
    }
}

/// What was read from the store cannot be written as JSON.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Code::Internal).caused_by(error)
    }
}
