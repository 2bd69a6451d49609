//! Errors as the problem documents that clients get: the only mapping from errors to them.
#![deny(clippy::wildcard_enum_match_arm)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Code, Problem};
use crate::cpu_pool::PoolError;
use crate::domain::form::admission::{AcceptingReason, Refusal};
use crate::domain::json::SyntaxError;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation, shortened, unescape};
use crate::id::FormId;
use crate::store::StoreError;

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub(crate) problem: Box<Problem>,
    /// Seconds after which a retry makes sense.
    pub(crate) retry_after: Option<u64>,
    /// For the log only.
    pub(crate) cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl ApiError {
    pub(crate) fn new(code: Code) -> Self {
        Self { problem: Box::new(Problem::new(code)), retry_after: None, cause: None }
    }

    /// Creates an error; `detail` says what is wrong and what to do.
    pub(crate) fn with_detail(code: Code, detail: impl Into<String>) -> Self {
        let mut error = Self::new(code);
        error.problem.detail = Some(detail.into());
        error
    }

    /// Sets the seconds after which a retry makes sense.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Creates the error for an object with the code `code` that the caller's workspace does not have under `id`, as sent.
    pub(crate) fn not_found(code: Code, id: &str) -> Self {
        let noun = code.name().trim_end_matches("_not_found");
        Self::with_detail(code, format!("there is no {noun} `{id}`"))
    }

    /// Creates the error for an exhausted budget or queue, or an object that kept changing: the same request may soon succeed.
    pub(crate) fn overloaded() -> Self {
        Self::new(Code::Overloaded).retry_after(1)
    }

    /// Creates the error for a request without a response after `limit`. Whether it took effect is unknown, which
    /// `overloaded` would deny.
    pub(crate) fn unfinished(limit: Duration) -> Self {
        let cause = std::io::Error::other(format!("no response after {} s", limit.as_secs()));
        Self::new(Code::StoreUnavailable).retry_after(5).caused_by(cause)
    }

    /// Creates the error for a handler that panicked with `text`.
    pub(crate) fn panicked(text: String) -> Self {
        Self::new(Code::Internal).caused_by(std::io::Error::other(format!("panicked: {text}")))
    }

    pub(crate) fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }

    /// Creates the error for a body that violates rules. `detail` summarizes the violations; only the first are listed.
    pub(crate) fn invalid(detail: String, mut violations: Vec<Violation>) -> Self {
        violations.truncate(MAX_VIOLATIONS);
        let mut error = Self::with_detail(Code::ValidationFailed, detail);
        error.problem.errors = violations;
        error
    }

    /// Creates the error for a query that violates rules: `violations` point into an object of its parameters.
    pub(crate) fn invalid_query(violations: Vec<Violation>) -> Self {
        let faults: Vec<_> = violations.iter().map(describe_parameter).collect();
        let mut error = Self::with_detail(Code::InvalidQuery, faults.join("; "));
        error.problem.errors = violations;
        error
    }

    /// Creates the error for a slug that belongs to `holder`, or to a form that the caller may not know.
    fn slug_taken(slug: &str, holder: Option<FormId>) -> Self {
        let holder = holder.map(|holder| holder.to_string());
        let name = holder.as_deref().unwrap_or("another form");
        let message = format!("slug `{slug}` already belongs to {name}");
        let mut error = Self::with_detail(Code::SlugTaken, message.clone());
        let violation = Violation::new("/slug", Rule::SlugTaken, message);
        error.problem.errors = vec![match &holder {
            Some(holder) => violation.help(format!("choose another slug, or change {holder}")),
            None => violation.help("choose another slug"),
        }];
        error.problem.form_id = holder;
        error
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotAccepting { reason, message } => {
                // The author's own message takes precedence.
                let detail = message.unwrap_or_else(|| describe_reason(reason).to_owned());
                Self::with_detail(reason.into(), detail)
            }
            Refusal::NoQuestions => Self::with_detail(
                Code::FormHasNoQuestions,
                "the form has no question to answer; add one before publishing it",
            ),
            Refusal::PreconditionFailed => Self::with_detail(
                Code::VersionMismatch,
                "the resource was changed after `If-Match` was read; get it again",
            ),
            Refusal::SlugTaken { slug, holder } => Self::slug_taken(&slug, holder),
            Refusal::NotInTrash => {
                Self::with_detail(Code::NotInTrash, "the form or submission is not in the trash")
            }
            Refusal::NotQuarantined => {
                Self::with_detail(Code::NotQuarantined, "the submission is not quarantined")
            }
            Refusal::WorkspaceInUse => Self::with_detail(
                Code::WorkspaceInUse,
                "the workspace of the request's own key cannot be deleted; use a key of another workspace",
            ),
            Refusal::LastKey => Self::with_detail(
                Code::LastKey,
                "this is the workspace's last key with the scope `admin`; create another one first",
            ),
            Refusal::InvalidBody(violations) => {
                Self::invalid(summarize_count(violations.len(), "problem", "in the request"), violations)
            }
            Refusal::InvalidDefinition(violations) => {
                Self::invalid(summarize_count(violations.len(), "problem", "in the definition"), violations)
            }
            Refusal::InvalidAnswers(violations) => Self::invalid(summarize_answers(&violations), violations),
            Refusal::NotPending => {
                Self::with_detail(Code::DeliveryNotPending, "the delivery does not wait for an attempt")
            }
            Refusal::NotRepeatable(why) => Self::with_detail(Code::DeliveryNotRepeatable, why),
            Refusal::KeyReused => Self::with_detail(
                Code::IdempotencyKeyReused,
                "`Idempotency-Key` was used before with a different body or query; use a new one",
            ),
        }
    }
}

fn describe_reason(reason: AcceptingReason) -> &'static str {
    match reason {
        AcceptingReason::Draft => {
            "the form is a draft; publish it by PATCH with `{\"status\":\"published\"}`"
        }
        AcceptingReason::Closed => "the form is closed and does not accept answers",
        AcceptingReason::NotOpenYet => "the form does not accept answers before `opens_at`",
        AcceptingReason::Expired => "the form does not accept answers after `closes_at`",
        AcceptingReason::Full => "the form has reached its response limit, `max_responses`",
    }
}

/// Describes what is wrong with the parameter that `violation` points to.
fn describe_parameter(violation: &Violation) -> String {
    let mut steps = violation.pointer.split('/').skip(1).map(unescape);
    let name = steps.next().unwrap_or_default();
    let name = match name.as_str() {
        "where" => steps.fold(name, |name, step| format!("{name}={step}")),
        _ => steps.fold(name, |name, step| format!("{name}[{step}]")),
    };
    let message = violation.message.trim_start_matches(&format!("`{name}` "));
    let help = violation.help.iter().map(|help| format!("; {help}")).collect::<String>();
    format!("`{}`: {message}{help}", shortened(&name))
}

fn summarize_answers(violations: &[Violation]) -> String {
    if !violations.iter().all(|violation| violation.pointer.starts_with("/answers/")) {
        return summarize_count(violations.len(), "problem", "in the submission");
    }
    let predicate = if violations.len() == 1 { "needs attention" } else { "need attention" };
    summarize_count(violations.len(), "answer", predicate)
}

/// Returns `count` with its noun and `predicate`. Beyond [`MAX_VIOLATIONS`] the count is not exact: validation stops.
fn summarize_count(count: usize, noun: &str, predicate: &str) -> String {
    match count {
        1 => format!("1 {noun} {predicate}"),
        ..=MAX_VIOLATIONS => format!("{count} {noun}s {predicate}"),
        _ => {
            format!("more than {MAX_VIOLATIONS} {noun}s {predicate}; the first {MAX_VIOLATIONS} are listed")
        }
    }
}

/// A body is not valid JSON.
impl From<SyntaxError> for ApiError {
    fn from(error: SyntaxError) -> Self {
        Self::with_detail(Code::MalformedJson, error.to_string())
    }
}

impl From<PoolError> for ApiError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded => Self::overloaded(),
            PoolError::Panicked(message) => StoreError::Panicked(message).into(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(cause: StoreError) -> Self {
        let error = match &cause {
            StoreError::Busy => Self::new(Code::StoreUnavailable).retry_after(1),
            StoreError::Overloaded => Self::overloaded(),
            StoreError::Unavailable(_) | StoreError::Interrupted(_) => {
                Self::new(Code::StoreUnavailable).retry_after(5)
            }
            StoreError::Full => Self::new(Code::StorageFull).retry_after(30),
            // The index is being verified, and rebuilt if necessary: soon the value may be readable again.
            StoreError::Damaged(_) | StoreError::Missing(_) => {
                Self::new(Code::StoreUnavailable).retry_after(5)
            }
            StoreError::Unsupported(why) => return Self::with_detail(Code::RouteNotFound, *why),
            StoreError::Undecodable(_) | StoreError::Panicked(_) | StoreError::Io(_) => {
                Self::new(Code::Internal)
            }
        };
        error.caused_by(cause)
    }
}

/// A response could not be serialized as JSON.
impl From<serde_json::Error> for ApiError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Code::Internal).caused_by(error)
    }
}
