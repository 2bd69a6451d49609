//! Submissions: answers as sent, stored verbatim.

pub mod batch;
pub mod check_answers;
pub mod edit;
pub mod filter;
pub mod json;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::json::{Object, SyntaxError, Value, parse, parse_object};
use crate::domain::open_enum::named_enum;
use crate::domain::validation::fields::control_character;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation, join, shortened};
use crate::id::{FormId, SubmissionId};

named_enum! {
    SubmissionStatus {
        Completed = "completed",
        /// Suspected to be spam: neither counted nor listed, and no event, until its form's owner releases it.
        Quarantined = "quarantined",
    }
}

named_enum! {
    /// Where a text is found that is to be erased.
    FoundIn {
        /// In answers or metadata, outside the trash.
        Answers = "answers",
        /// In the trash, or quarantined.
        Trash = "trash",
        /// In a state that an edit replaced.
        History = "history",
    }
}

/// One accepted set of answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Contains the time of acceptance in milliseconds.
    pub id: SubmissionId,
    pub form: FormId,
    /// The version of the questions that the answers were checked against.
    pub form_version: u32,
    pub status: SubmissionStatus,
    /// A JSON object, exactly as sent.
    pub answers: Box<str>,
    /// A JSON object of the sender's metadata, exactly as sent.
    pub metadata: Option<Box<str>>,
    pub edited: Option<EditInfo>,
    /// When it was moved to the trash; for a quarantined one, when it arrived.
    pub deleted_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditInfo {
    pub at: Timestamp,
    pub count: u32,
}

/// The content of a submission before an edit replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedState {
    /// Number of earlier edits; counts from 0.
    pub number: u32,
    pub answers: Box<str>,
    pub metadata: Option<Box<str>>,
    pub replaced_at: Timestamp,
}

impl Submission {
    pub fn size(&self) -> usize {
        self.answers.len() + self.metadata.as_ref().map_or(0, |metadata| metadata.len())
    }

    /// The revision: counts from 1, incremented by each edit.
    pub fn revision(&self) -> u64 {
        1 + u64::from(self.edits())
    }

    pub fn edits(&self) -> u32 {
        self.edited.map_or(0, |edited| edited.count)
    }

    /// When it was moved to the trash, if it is there.
    pub fn trashed_at(&self) -> Option<Timestamp> {
        self.deleted_at.filter(|_| self.status != SubmissionStatus::Quarantined)
    }

    /// The time of acceptance, from the id.
    pub fn submitted_at(&self) -> Timestamp {
        Timestamp::from_millis(self.id.millis())
    }
}

/// Parsed answers with their original text.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    text: Box<str>,
    values: Object,
}

impl Answers {
    /// Creates answers from `values`, which were parsed from `text`.
    pub(in crate::domain) fn new(text: &str, values: Object) -> Self {
        Self { text: text.into(), values }
    }

    pub(in crate::domain) fn read(text: &str) -> Result<Self, SyntaxError> {
        let members = parse_object(text)?;
        let values = members.into_iter().map(|(key, value, _)| (key, value)).collect();
        Ok(Self::new(text, values))
    }

    /// The JSON object exactly as sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn values(&self) -> &[(String, Value)] {
        &self.values
    }

    /// Appends `more`; the original text is kept.
    #[must_use]
    pub fn with_defaults<'a>(mut self, more: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let mut text = self.text.into_string();
        text.pop().expect("an object ends with a brace");
        for (id, value) in more {
            let comma = if self.values.is_empty() { "" } else { "," };
            text += &format!("{comma}\"{id}\":{value}");
            self.values.push((id.to_owned(), value.clone()));
        }
        text.push('}');
        Self { text: text.into(), ..self }
    }

    /// Keeps the answers whose key satisfies `keeps`, with their original text; also returns the other keys.
    #[must_use]
    pub fn retain(self, keeps: impl Fn(&str) -> bool) -> (Self, Vec<String>) {
        if self.values.iter().all(|(key, _)| keeps(key)) {
            return (self, Vec::new());
        }
        let (mut text, mut values, mut dropped) = (String::from("{"), Object::new(), Vec::new());
        let members = parse_object(&self.text).expect("answers are an object");
        // `passed` is the position after the last member and its comma; `end` that of the closing brace.
        let (mut passed, end) = (self.text.find('{').map_or(0, |brace| brace + 1), self.text.len() - 1);
        for (key, value, range) in members {
            let comma = self.text[range.end..end].find(',').map_or(end, |comma| range.end + comma);
            if keeps(&key) {
                text.push_str(if values.is_empty() { "" } else { "," });
                text.push_str(&self.text[passed..comma]);
                values.push((key, value));
            } else {
                dropped.push(key);
            }
            passed = comma + 1;
        }
        text.push('}');
        (Self { text: text.into(), values }, dropped)
    }

    pub fn into_text(self) -> Box<str> {
        self.text
    }
}

/// Why the body of a submission cannot be parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyError {
    Syntax(SyntaxError),
    Shape(Vec<Violation>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SubmittedAnswers {
    pub answers: Answers,
    /// A JSON object accepted by [`check_metadata`], exactly as sent.
    pub metadata: Option<Box<str>>,
    /// Violations outside the answers, to be reported together with those of the answers.
    pub violations: Vec<Violation>,
}

/// Parses the body of a submission: an object with `answers` and, optionally, `metadata`.
pub fn read(body: &str, limits: &Limits) -> Result<SubmittedAnswers, BodyError> {
    let Body { answers, metadata, mut violations } = Body::read(body)?;
    if let Some((value, _)) = &metadata {
        check_metadata(value, limits, &mut violations);
    }
    let Some(answers) = answers else {
        if !violations.iter().any(|violation| violation.pointer == "/answers") {
            violations.push(Violation::new("/answers", Rule::MissingField, "`answers` is missing"));
        }
        return Err(BodyError::Shape(violations));
    };
    Ok(SubmittedAnswers { answers, metadata: metadata.map(|(_, text)| text.into()), violations })
}

/// The body of a request that creates or edits a submission.
#[derive(Default)]
struct Body<'a> {
    answers: Option<Answers>,
    /// The value and its text.
    metadata: Option<(Value, &'a str)>,
    violations: Vec<Violation>,
}

impl<'a> Body<'a> {
    fn read(body: &'a str) -> Result<Self, BodyError> {
        if !body.trim_start().starts_with('{') {
            let value = parse(body).map_err(BodyError::Syntax)?;
            let message = format!("the body must be an object, not {}", value.kind());
            return Err(BodyError::Shape(vec![Violation::new("", Rule::TypeMismatch, message)]));
        }
        let mut read = Self::default();
        for (key, value, range) in parse_object(body).map_err(BodyError::Syntax)? {
            match (key.as_str(), value) {
                ("answers", Value::Object(values)) => read.answers = Some(Answers::new(&body[range], values)),
                ("answers", other) => {
                    read.violations.push(Violation::wrong_type("/answers", "answers", "an object", &other));
                }
                ("metadata", value) => read.metadata = Some((value, &body[range])),
                (name, _) => {
                    let message = format!("unknown field `{}`", shortened(name));
                    let violation = Violation::new(join("", name), Rule::UnknownField, message);
                    read.violations.push(violation.allowed(name, ["answers", "metadata"]));
                }
            }
        }
        Ok(read)
    }
}

/// Maximum names in the metadata of a submission.
const MAX_METADATA: usize = 20;

/// Checks `value`, the member `metadata` of a submission: a flat object of at most [`MAX_METADATA`] texts.
///
/// Names and texts are each limited to the size of an answer, without control characters except tab and line breaks.
fn check_metadata(value: &Value, limits: &Limits, violations: &mut Vec<Violation>) {
    let Value::Object(members) = value else {
        violations.push(Violation::wrong_type("/metadata", "metadata", "an object", value));
        return;
    };
    if members.len() > MAX_METADATA {
        let message = format!("`metadata` has {} members, {MAX_METADATA} are allowed", members.len());
        violations.push(Violation::new("/metadata", Rule::TooMany, message));
    }
    for (key, value) in members {
        if violations.len() > MAX_VIOLATIONS {
            return;
        }
        let pointer = join("/metadata", key);
        let Value::String(text) = value else {
            let message = format!("metadata must be text, not {}", value.kind());
            violations.push(Violation::new(pointer, Rule::TypeMismatch, message));
            continue;
        };
        violations
            .extend([key, text].into_iter().find_map(|text| control_character("metadata", text, &pointer)));
        let longest = text.len().max(key.len());
        if longest > limits.answer {
            let message = format!("{longest} bytes are too many, {} are allowed", limits.answer);
            violations.push(Violation::new(pointer, Rule::TooLong, message));
        }
    }
}
