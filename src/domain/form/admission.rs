//! The one decision about a new submission, and everything that can stand against it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::form::settings::Settings;
use crate::domain::form::{Form, FormStatus};
use crate::domain::validation::violation::Violation;
use crate::id::FormId;

/// An expected "no". Nothing has happened, and the caller is told why.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The form takes no answers now.
    NotAccepting {
        reason: AcceptingReason,
        /// What its author has to say about that.
        message: Option<String>,
    },
    /// A form that asks for no answer cannot be published.
    NoQuestions,
    /// The form or the submission is at another revision than the change was made for.
    PreconditionFailed,
    /// Another form, the `holder`, has the slug.
    SlugTaken { slug: String, holder: FormId },
    /// What is to be restored is not in the trash.
    NotInTrash,
    /// The definition breaks rules.
    InvalidDefinition(Vec<Violation>),
    /// The answers break rules.
    InvalidAnswers(Vec<Violation>),
    /// The idempotency key came before, with another body.
    KeyReused,
}

/// Why a form takes no answers now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptingReason {
    /// It is a draft.
    Draft,
    /// It was closed by hand.
    Closed,
    /// `opens_at` is still to come.
    NotOpenYet,
    /// `closes_at` is over.
    Expired,
    /// It has `max_responses`.
    Full,
}

impl AcceptingReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Draft, Self::Closed, Self::NotOpenYet, Self::Expired, Self::Full];

    /// The reason's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Closed => "closed",
            Self::NotOpenYet => "not_open_yet",
            Self::Expired => "expired",
            Self::Full => "full",
        }
    }

    /// What the author of a form with these settings has to say about it. `closed_message` is for those who come too
    /// late, not for those who come too early.
    pub fn message(self, settings: &Settings) -> Option<String> {
        let is_over = matches!(self, Self::Closed | Self::Expired | Self::Full);
        settings.closed_message.clone().filter(|_| is_over)
    }
}

impl fmt::Display for AcceptingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Refusal {
    /// `form` takes no answers.
    pub fn not_accepting(form: &Form, reason: AcceptingReason) -> Self {
        Self::NotAccepting { reason, message: reason.message(&form.settings) }
    }

    /// The slug `slug` belongs to the form `holder` already.
    pub fn slug_taken(slug: &str, holder: FormId) -> Self {
        Self::SlugTaken { slug: slug.to_owned(), holder }
    }
}

/// What an earlier request with the same idempotency key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Hash of its body and query.
    pub body: u128,
    /// The binary form of the id of what it made; shorter ids are padded in front. Of the restore of a submission, how
    /// often that had been edited.
    pub result: u128,
    /// When it did.
    pub at: Timestamp,
}

/// How long the success of a request with an idempotency key is remembered.
pub const IDEMPOTENCY_RECORD_MILLIS: i64 = DAY_MILLIS;

impl IdempotencyRecord {
    /// What to do with a request whose body and query have the hash `body`: `None` if this memory has expired, else
    /// this memory to answer from, or the refusal of another body.
    pub fn replay(self, body: u128, now: Timestamp) -> Option<Result<Self, Refusal>> {
        let forgotten = now.millis() >= self.at.millis() + IDEMPOTENCY_RECORD_MILLIS;
        (!forgotten).then_some(if self.body == body { Ok(self) } else { Err(Refusal::KeyReused) })
    }
}

/// What the decision about a new submission needs to know.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionInput<'a> {
    /// The form as it is now.
    pub form: &'a Form,
    /// How many submissions it has.
    pub responses: u64,
    /// The revision of the form against which the answers were checked.
    pub checked_revision: u64,
    /// The earlier request with the same idempotency key, and the hash of this one's body.
    pub earlier: Option<(IdempotencyRecord, u128)>,
}

/// What to do with a submission that nothing stands against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Store it.
    Store,
    /// It was stored before.
    Replay(IdempotencyRecord),
    /// It was checked against another revision of the form: check again.
    Recheck,
}

/// Decides about a submission whose answers were checked. An earlier success comes first: the retry of what was
/// stored meets that, whatever the form has become since.
pub fn admit(input: &AdmissionInput<'_>, now: Timestamp) -> Result<Admission, Refusal> {
    if let Some(answer) = input.earlier.and_then(|(earlier, body)| earlier.replay(body, now)) {
        return answer.map(Admission::Replay);
    }
    if input.form.revision != input.checked_revision {
        return Ok(Admission::Recheck);
    }
    accepting(input.form, input.responses, now)
        .map(|()| Admission::Store)
        .map_err(|why| Refusal::not_accepting(input.form, why))
}

/// Whether `form`, which has `responses` submissions, takes answers at `now`; why not, if not.
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
