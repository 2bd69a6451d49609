//! Submissions: answers as sent, stored verbatim.

pub mod check_answers;
pub mod edit;
pub mod filter;
pub mod json;
pub mod metadata;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::json::{Object, SyntaxError, Value, parse, parse_object};
use crate::domain::open_enum::named_enum;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};
use crate::id::{FormId, SubmissionId};

named_enum! {
    SubmissionStatus {
        Completed = "completed",
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
    /// A JSON object accepted by [`metadata::check`], exactly as sent.
    pub metadata: Option<Box<str>>,
    /// Violations outside the answers, to be reported together with those of the answers.
    pub violations: Vec<Violation>,
}

/// Parses the body of a submission: an object with `answers` and, optionally, `metadata`.
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

/// Parses the object `body` into its members, each with the range of its value.
pub(in crate::domain) fn members(body: &str) -> Result<Vec<(String, Value, Range<usize>)>, BodyError> {
    if body.trim_start().starts_with('{') {
        return parse_object(body).map_err(BodyError::Syntax);
    }
    let value = parse(body).map_err(BodyError::Syntax)?;
    let message = format!("the body must be an object, not {}", value.kind());
    Err(BodyError::Shape(vec![Violation::new("", Rule::TypeMismatch, message)]))
}

pub(in crate::domain) fn not_an_object(name: &str, value: &Value) -> Violation {
    Violation::wrong_type(join("", name), name, "an object", value)
}

pub(in crate::domain) fn unknown_field(name: &str) -> Violation {
    let message = format!("unknown field `{}`", shortened(name));
    Violation::new(join("", name), Rule::UnknownField, message).allowed(name, ["answers", "metadata"])
}
