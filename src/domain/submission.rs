//! Submissions: the answers that were sent, kept to the letter.

use serde::{Deserialize, Serialize};

use super::json::{self, Object, SyntaxError, Value};
use super::violation::{Rule, Violation, join};
use crate::clock::Timestamp;
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
}

impl Submission {
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
    pub fn with<'a>(mut self, more: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
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
    pub fn keeping(self, keeps: impl Fn(&str) -> bool) -> (Self, Vec<String>) {
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
pub enum Unreadable {
    /// It is no JSON.
    Syntax(SyntaxError),
    /// It has the wrong shape.
    Shape(Vec<Violation>),
}

/// Reads the body of a submission: an object with the one member `answers`.
pub fn read(body: &str) -> Result<Answers, Unreadable> {
    if !body.trim_start().starts_with('{') {
        let value = json::parse(body).map_err(Unreadable::Syntax)?;
        let message = format!("the body must be an object, not {}", value.kind());
        return Err(Unreadable::Shape(vec![Violation::new("", Rule::TypeMismatch, message)]));
    }
    let mut violations = Vec::new();
    let mut answers = None;
    for (key, value, range) in json::parse_object(body).map_err(Unreadable::Syntax)? {
        match (key.as_str(), value) {
            ("answers", Value::Object(values)) => {
                answers = Some(Answers { text: body[range].into(), values })
            }
            ("answers", other) => {
                let message = format!("`answers` must be an object, not {}", other.kind());
                violations.push(Violation::new("/answers", Rule::TypeMismatch, message));
            }
            (name, _) => {
                let message = format!("unknown field `{}`", name.chars().take(80).collect::<String>());
                let violation = Violation::new(join("", name), Rule::UnknownField, message);
                violations.push(violation.instead(["answers"]));
            }
        }
    }
    match answers {
        Some(answers) if violations.is_empty() => Ok(answers),
        None if !violations.iter().any(|violation| violation.pointer == "/answers") => {
            violations.push(Violation::new("", Rule::MissingField, "a submission needs `answers`"));
            Err(Unreadable::Shape(violations))
        }
        _ => Err(Unreadable::Shape(violations)),
    }
}
