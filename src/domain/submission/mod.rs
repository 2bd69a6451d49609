//! Submissions: the answers that were sent, kept to the letter.

pub mod answer_validation;
pub mod edit;
pub mod filter;
pub mod metadata;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::json::{self, Object, SyntaxError, Value};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};
use crate::id::{FormId, SubmissionId};

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionStatus {
    Completed,
}

impl SubmissionStatus {
    /// The status's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
        }
    }
}

/// One accepted set of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Its millisecond is the moment of acceptance.
    pub id: SubmissionId,
    pub form: FormId,
    /// The version of the questions it was checked against.
    pub form_version: u32,
    pub status: SubmissionStatus,
    /// A JSON object, exactly as it was sent.
    pub answers: Box<str>,
    /// The same, of what its sender keeps beside the answers.
    pub metadata: Option<Box<str>>,
    /// What was done to it since, if anything.
    pub edited: Option<EditInfo>,
    /// When it went to the trash, if it is there.
    pub deleted_at: Option<Timestamp>,
}

/// How a submission was edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditInfo {
    /// The last time.
    pub at: Timestamp,
    /// How often.
    pub count: u32,
}

/// What a submission held before an edit replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedState {
    /// How many edits had come before; from 0.
    pub number: u32,
    pub answers: Box<str>,
    pub metadata: Option<Box<str>>,
    pub replaced_at: Timestamp,
}

impl Submission {
    /// Bytes of its texts.
    pub fn size(&self) -> usize {
        self.answers.len() + self.metadata.as_ref().map_or(0, |metadata| metadata.len())
    }

    /// Counts its states, from 1.
    pub fn revision(&self) -> u64 {
        1 + u64::from(self.edits())
    }

    /// How often it was edited.
    pub fn edits(&self) -> u32 {
        self.edited.map_or(0, |edited| edited.count)
    }

    /// When it was accepted: the millisecond of its id.
    pub fn submitted_at(&self) -> Timestamp {
        Timestamp::from_millis(self.id.millis())
    }
}

/// Answers as they were sent, with the text they came as.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    text: Box<str>,
    values: Object,
}

impl Answers {
    /// The answers `values`, which were read from `text`.
    pub(in crate::domain) fn new(text: &str, values: Object) -> Self {
        Self { text: text.into(), values }
    }

    /// The answers in `text`, a JSON object.
    pub(in crate::domain) fn read(text: &str) -> Result<Self, SyntaxError> {
        let members = json::parse_object(text)?;
        let values = members.into_iter().map(|(key, value, _)| (key, value)).collect();
        Ok(Self::new(text, values))
    }

    /// The object exactly as it was sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The answers in the order sent.
    pub fn values(&self) -> &[(String, Value)] {
        &self.values
    }

    /// The same with `more` at the end; the text that was sent stays as it is.
    #[must_use]
    pub fn with_defaults<'a>(mut self, more: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        for (id, value) in more {
            let open = self.text.strip_suffix('}').expect("an object ends so");
            let comma = if self.values.is_empty() { "" } else { "," };
            self.text = format!("{open}{comma}\"{id}\":{value}}}").into();
            self.values.push((id.to_owned(), value.clone()));
        }
        self
    }

    /// Only those under the keys that `keeps` takes, cut out of the text as it was sent; and the other keys.
    #[must_use]
    pub fn retain(self, keeps: impl Fn(&str) -> bool) -> (Self, Vec<String>) {
        if self.values.iter().all(|(key, _)| keeps(key)) {
            return (self, Vec::new());
        }
        let (mut text, mut values, mut dropped) = (String::from("{"), Object::new(), Vec::new());
        let members = json::parse_object(&self.text).expect("answers are an object");
        // What is within the braces, and how much of it was passed: a member goes up to the comma, and both with it.
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

    /// The text alone, without a copy.
    pub fn into_text(self) -> Box<str> {
        self.text
    }
}

/// Why a submission's body cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyError {
    /// It is no JSON.
    Syntax(SyntaxError),
    /// It has the wrong shape.
    Shape(Vec<Violation>),
}

/// A submission as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmittedAnswers {
    pub answers: Answers,
    /// A JSON object that [`metadata`] takes, exactly as it was sent.
    pub metadata: Option<Box<str>>,
    /// What is wrong around the answers. It is to be told with what is wrong with them.
    pub violations: Vec<Violation>,
}

/// Reads the body of a submission: an object with the member `answers`, and `metadata` if there is any.
pub fn read(body: &str, limits: &Limits) -> Result<SubmittedAnswers, BodyError> {
    let mut violations = Vec::new();
    let (mut answers, mut metadata) = (None, None);
    for (key, value, range) in members(body)? {
        match (key.as_str(), value) {
            ("answers", Value::Object(values)) => {
                answers = Some(Answers::new(&body[range], values));
            }
            ("answers", other) => violations.push(not_an_object("answers", &other)),
            ("metadata", value) => {
                metadata::check(&value, limits, &mut violations);
                metadata = Some(body[range].into());
            }
            (name, _) => violations.push(unknown_field(name)),
        }
    }
    match answers {
        Some(answers) => Ok(SubmittedAnswers { answers, metadata, violations }),
        None if !violations.iter().any(|violation| violation.pointer == "/answers") => {
            violations.push(Violation::new("/answers", Rule::MissingField, "`answers` is missing"));
            Err(BodyError::Shape(violations))
        }
        None => Err(BodyError::Shape(violations)),
    }
}

/// The members of the object `body`, and where the value of each stands in it.
pub(in crate::domain) fn members(body: &str) -> Result<Vec<(String, Value, Range<usize>)>, BodyError> {
    if body.trim_start().starts_with('{') {
        return json::parse_object(body).map_err(BodyError::Syntax);
    }
    let value = json::parse(body).map_err(BodyError::Syntax)?;
    let message = format!("the body must be an object, not {}", value.kind());
    Err(BodyError::Shape(vec![Violation::new("", Rule::TypeMismatch, message)]))
}

/// The member `name` of a body is `value`, which is no object.
pub(in crate::domain) fn not_an_object(name: &str, value: &Value) -> Violation {
    let message = format!("`{name}` must be an object, not {}", value.kind());
    Violation::new(join("", name), Rule::TypeMismatch, message)
}

/// A body has a member that no submission has.
pub(in crate::domain) fn unknown_field(name: &str) -> Violation {
    let message = format!("unknown field `{}`", shortened(name));
    Violation::new(join("", name), Rule::UnknownField, message).allowed(name, ["answers", "metadata"])
}
