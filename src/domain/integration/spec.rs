//! What a type of integration is and takes. Parsing, help, documentation and OpenAPI schemas come from it.

use super::event::EventType;

#[derive(Debug, Clone, Copy)]
pub struct IntegrationSpec {
    /// What it does, a sentence.
    pub about: &'static str,
    /// The events that an integration may subscribe to.
    pub events: &'static [EventType],
    /// Its own members, beside those that all types have.
    pub members: &'static [Member],
    pub pace: Pace,
    /// How to set it up, in Markdown.
    pub set_up: &'static str,
    /// The limits of the service, and what is cut to keep them.
    pub limits: &'static str,
    /// Whether the receiver may get something twice, and how it can tell.
    pub repeats: &'static str,
    /// Where the service documents its limits; empty for a kind without a service.
    pub source: &'static str,
}

/// Longest time in milliseconds that an HTTP request takes.
pub const HTTP_LIMIT_MS: i64 = 15_000;

/// How deliveries are attempted.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub mode: WriteMode,
    /// Maximum attempts in progress for the same target.
    pub concurrency: usize,
    /// Maximum deliveries carried out together, as one write.
    pub batch: usize,
    /// Milliseconds from one attempt to the next, as long as attempts succeed.
    pub interval_ms: i64,
    /// Longest time in milliseconds that an attempt takes.
    pub longest_ms: i64,
    /// Waits between attempts in milliseconds.
    pub schedule: &'static [i64],
}

/// How what is delivered reaches the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Each delivery is a message.
    Message,
    /// Each delivery appends a row.
    Append,
    /// One writing of the whole file makes all deliveries.
    Replace,
}

/// A member of an integration of some type.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub name: &'static str,
    pub need: Need,
    pub value: MemberValue,
    /// What it means, a sentence.
    pub about: &'static str,
    /// An example as JSON; empty for a secret.
    pub example: &'static str,
}

/// Whether a member must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Required,
    Optional,
    /// This value counts if it is left out, as JSON.
    Default(&'static str),
}

/// Explains what is wrong with a text, as in "`name` must be …"; never quotes it.
pub type Check = fn(&str) -> Result<(), String>;

/// The result of a [`Check`] with this explanation.
pub(super) fn ensure(is_valid: bool, problem: &str) -> Result<(), String> {
    if is_valid { Ok(()) } else { Err(problem.to_owned()) }
}

/// What a member may be.
#[derive(Debug, Clone, Copy)]
pub enum MemberValue {
    Text {
        max: usize,
        check: Check,
    },
    Choice(&'static [&'static str]),
    Number {
        min: i64,
        max: i64,
    },
    Flag,
    Texts {
        max_items: usize,
        max: usize,
        check: Check,
    },
    /// A template of at most this many characters.
    Template(usize),
    /// The id of a question of type `email`.
    EmailQuestion,
    /// A URL to which secrets are sent: if it leads to another server, they must be sent again.
    Url,
    Secret(Check),
    /// A URL that is a secret as a whole; the check is of its host.
    SecretUrl(Check),
    /// The secret that signs requests; made by the server if it is left out.
    SigningSecret,
    /// Headers of requests by name, each text or a secret.
    Headers,
}

impl IntegrationSpec {
    pub fn member(&self, name: &str) -> Option<&'static Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl Member {
    /// The value that counts if it is left out, as JSON.
    pub fn default(&self) -> Option<&'static str> {
        match self.need {
            Need::Default(text) => Some(text),
            Need::Required | Need::Optional => None,
        }
    }

    pub(super) const fn secret(name: &'static str, need: Need, check: Check, about: &'static str) -> Self {
        Self { name, need, value: MemberValue::Secret(check), about, example: "" }
    }

    pub fn is_text(&self) -> bool {
        use MemberValue::{Choice, EmailQuestion, Template, Text, Url};
        matches!(self.value, Text { .. } | Choice(_) | Template(_) | EmailQuestion | Url)
    }

    /// Whether it is a secret as a whole.
    pub fn is_secret(&self) -> bool {
        matches!(self.value, MemberValue::Secret(_) | MemberValue::SecretUrl(_) | MemberValue::SigningSecret)
    }

    pub fn is_list(&self) -> bool {
        matches!(self.value, MemberValue::Texts { .. })
    }
}
