//! The decision to accept a new submission, and every reason to refuse a request.

use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::form::settings::Settings;
use crate::domain::form::{Form, FormStatus};
use crate::domain::open_enum::named_enum;
use crate::domain::validation::violation::Violation;
use crate::id::FormId;

/// An expected refusal: nothing was changed, and the caller gets the reason.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The form takes no answers now.
    NotAccepting {
        reason: AcceptingReason,
        /// The author's `closed_message`, if it applies.
        message: Option<String>,
    },
    /// A form without a question to answer cannot be published.
    NoQuestions,
    /// The form or submission is at another revision than the change expects.
    PreconditionFailed,
    SlugTaken {
        slug: String,
        /// The form that has it; `None` if the caller may not know.
        holder: Option<FormId>,
    },
    NotInTrash,
    NotQuarantined,
    /// The workspace of the request's own key cannot be deleted.
    WorkspaceInUse,
    /// Without the key, nobody could manage the keys of its workspace.
    LastKey,
    InvalidDefinition(Vec<Violation>),
    InvalidAnswers(Vec<Violation>),
    /// The body of a request that is neither a definition nor a submission.
    InvalidBody(Vec<Violation>),
    /// The idempotency key was used before, with another body or query.
    KeyReused,
    /// The delivery does not wait for an attempt.
    NotPending,
    /// The delivery cannot be sent again, for this reason.
    NotRepeatable(&'static str),
}

named_enum! {
    /// Why a form does not accept answers now.
    AcceptingReason {
        Draft = "draft",
        Closed = "closed",
        NotOpenYet = "not_open_yet",
        Expired = "expired",
        Full = "full",
    }
}

impl AcceptingReason {
    /// Returns the form's `closed_message` if this reason is that the form is closed, expired or full; it is not shown
    /// before the form opens.
    pub fn message(self, settings: &Settings) -> Option<String> {
        let is_closed = matches!(self, Self::Closed | Self::Expired | Self::Full);
        settings.closed_message.clone().filter(|_| is_closed)
    }
}

impl Refusal {
    pub fn not_accepting(form: &Form, reason: AcceptingReason) -> Self {
        Self::NotAccepting { reason, message: reason.message(&form.settings) }
    }

    pub fn slug_taken(slug: &str, holder: FormId) -> Self {
        Self::SlugTaken { slug: slug.to_owned(), holder: Some(holder) }
    }
}

/// The recorded outcome of a request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Hash of the request's body and query.
    pub body: u128,
    /// The binary id of the created object, left-padded; for the restore or release of a submission, its number of edits.
    pub result: u128,
    pub at: Timestamp,
    /// Data of the response that `result` does not determine: JSON, or the whole body.
    pub extra: Vec<u8>,
}

pub const IDEMPOTENCY_RECORD_MILLIS: i64 = DAY_MILLIS;

impl IdempotencyRecord {
    /// Matches a repeated request, whose body and query have the hash `body`: the record to answer from, or `None` if it
    /// has expired.
    ///
    /// # Errors
    /// [`Refusal::KeyReused`] if the body or query differs.
    pub fn replay(self, body: u128, now: Timestamp) -> Option<Result<Self, Refusal>> {
        let is_expired = now.millis() >= self.at.millis() + IDEMPOTENCY_RECORD_MILLIS;
        (!is_expired).then_some(if self.body == body { Ok(self) } else { Err(Refusal::KeyReused) })
    }
}

/// The record of an earlier request with the same idempotency key, or why the key cannot be reused; `None` if there was no such
/// request.
pub type EarlierRequest = Option<Result<IdempotencyRecord, Refusal>>;

/// The decision about a submission that is not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Store,
    /// Answer from the record: an earlier request stored it.
    Replay(IdempotencyRecord),
    /// Check the answers again: the form has changed since.
    Recheck,
}

/// Decides whether to store a submission to `form`, which has `responses`, whose answers were checked against its revision
/// `checked_revision`.
///
/// The record of an `earlier` request with the same idempotency key is consulted first: a retry replays the earlier success
/// even if the form has closed since.
pub fn admit(
    form: &Form,
    responses: u64,
    checked_revision: u64,
    earlier: EarlierRequest,
    now: Timestamp,
) -> Result<Admission, Refusal> {
    if let Some(earlier) = earlier {
        return earlier.map(Admission::Replay);
    }
    if form.revision != checked_revision {
        return Ok(Admission::Recheck);
    }
    accepting(form, responses, now)
        .map(|()| Admission::Store)
        .map_err(|why| Refusal::not_accepting(form, why))
}

/// Checks whether `form`, which has `responses` submissions, accepts answers at `now`: its status, its times and its
/// response limit.
pub fn accepting(form: &Form, responses: u64, now: Timestamp) -> Result<(), AcceptingReason> {
    let settings = &form.settings;
    let refusals = [
        (form.status == FormStatus::Draft, AcceptingReason::Draft),
        (settings.is_closed(), AcceptingReason::Closed),
        (settings.opens_at.is_some_and(|opens| now < opens), AcceptingReason::NotOpenYet),
        (settings.closes_at.is_some_and(|closes| now >= closes), AcceptingReason::Expired),
        (settings.max_responses.is_some_and(|most| responses >= most), AcceptingReason::Full),
    ];
    refusals.into_iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, why)| Err(why))
}
