//! Questions: their types, the settings of each, and the answers they accept.
//!
//! To add a type of question: a file that implements [`Rules`], and a row in the table of [`QuestionKind`]s.

mod boolean;
mod calendar;
mod choice;
pub mod control;
mod definition;
mod display_only;
mod email;
mod hidden;
pub(in crate::domain) mod json;
mod kind;
pub mod labels;
mod matrix;
mod number;
pub mod options;
mod phone;
mod text;
mod url;

pub use definition::MAX_DESCRIPTION;
pub(in crate::domain) use email::domain_of as email_domain;
pub use kind::QuestionKind;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::domain::condition::{Condition, ValueType};
use crate::domain::json::{Value, parse};
use crate::domain::language::{Texts, fill};
use crate::domain::pattern::Pattern;
use crate::domain::question::control::Control;
use crate::domain::validation::limits::{Limits, MAX_MATCHED, MAX_NUMBER};
use crate::domain::validation::violation::{Rule, join};

/// The rules of a type of question, with its settings applied.
pub trait Rules: fmt::Debug + Send + Sync {
    /// Checks `answer`, which is not empty, and returns all errors. `now` is for relative bounds such as `today`; without
    /// it they are skipped, and the errors are those of every day. Messages are made of `texts`.
    fn check(&self, answer: &Value, now: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError>;

    /// Whether `answer` counts as no answer.
    fn is_empty(&self, answer: &Value) -> bool {
        is_empty(answer)
    }

    /// Checks an empty `answer` to a question that is not required.
    fn check_empty(&self, _answer: &Value, _texts: &Texts) -> Vec<AnswerError> {
        Vec::new()
    }

    /// The JSON Schema (2020-12) of valid answers, as exact as JSON Schema allows. Excludes empty answers.
    fn schema(&self) -> Value;

    /// A valid answer, if only the required settings are set.
    fn example(&self) -> Value;

    /// How a page draws the question.
    fn control(&self) -> Control<'_>;

    /// A short description of a valid answer: `a whole number from 1 to 5`.
    fn expects(&self, texts: &Texts) -> String;

    /// Converts typed text to an answer; returns the text itself if it cannot be converted, for [`check`](Self::check) to
    /// report.
    fn parse_text(&self, text: &str) -> Value {
        text.into()
    }

    /// How conditions compare answers that are texts.
    fn value_type(&self) -> ValueType {
        ValueType::Text
    }

    /// Whether an answer may be a text or the number or boolean that the text spells, which compare differently.
    fn is_untyped(&self) -> bool {
        false
    }

    /// The smallest and the greatest valid answer, if fixed.
    fn range(&self) -> [Option<Value>; 2] {
        [None, None]
    }

    /// The pattern that answers must match, if any.
    fn pattern(&self) -> Option<&Pattern> {
        None
    }

    /// Maximum characters of an answer that is matched against patterns; a longer one matches none.
    fn max_length(&self) -> usize {
        MAX_MATCHED
    }

    fn takes_answer(&self) -> bool {
        true
    }

    /// Whether the question is visible to respondents.
    fn is_shown(&self) -> bool {
        true
    }

    /// Whether free text is accepted instead of an option, `{"other":"text"}`.
    fn takes_other(&self) -> bool {
        false
    }

    /// The values that are valid where an answer breaks `rule`: options, or the rows of a matrix.
    fn allowed_values(&self, _rule: Rule) -> Vec<&str> {
        Vec::new()
    }

    /// The answer that is stored if none is sent.
    fn default_answer(&self) -> Option<&Value> {
        None
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerError {
    /// JSON pointer (RFC 6901) within the answer to the invalid part; empty for the whole answer.
    pub at: String,
    pub rule: Rule,
    /// An instruction for the respondent: `Enter a whole number`.
    pub message: String,
}

impl AnswerError {
    fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { at: String::new(), rule, message: message.into() }
    }

    /// The error of an answer that is not `what` should be entered: a time.
    fn enter(rule: Rule, what: &str, texts: &Texts) -> Self {
        Self::new(rule, fill(texts.enter, &[("what", &what)]))
    }

    /// The error of an answer that breaks the `instruction`: `found` is its length, count or type.
    fn instead_of(rule: Rule, instruction: &str, found: &dyn fmt::Display, texts: &Texts) -> Self {
        Self::new(rule, fill(texts.instead_of, &[("instruction", &instruction), ("found", found)]))
    }

    /// The error of an `answer` that is not what is `expected`: text, a list.
    fn wrong_type(expected: &str, answer: &Value, texts: &Texts) -> Self {
        let found = match answer {
            Value::Null => texts.type_null,
            Value::Bool(_) => texts.type_boolean,
            Value::Number(_) => texts.type_number,
            Value::String(_) => texts.type_text,
            Value::Array(_) => texts.type_list,
            Value::Object(_) => texts.type_object,
        };
        Self::instead_of(Rule::TypeMismatch, &fill(texts.enter, &[("what", &expected)]), &found, texts)
    }

    /// The error of a required answer, to a question or in a row called `title`, that is missing.
    fn required(title: &str, texts: &Texts) -> Self {
        Self::new(Rule::Required, fill(texts.needs_answer, &[("title", &title)]))
    }

    /// Moves the error to the member or item `key` of an enclosing value.
    fn within(self, key: &str) -> Self {
        Self { at: join("", key) + &self.at, ..self }
    }
}

#[derive(Debug, Clone)]
pub struct Question {
    /// The key of its answers, unique in the form and never reused. `None` for a statement or page without an id, and until
    /// one is assigned.
    pub id: Option<String>,
    /// The ids that it had before: answers stored under them are its answers, too.
    pub was: Vec<String>,
    pub kind: QuestionKind,
    pub title: String,
    pub description: Option<String>,
    /// Whether an answer is required, if the question is asked.
    pub required: bool,
    /// When the question is asked; always if `None`. On a page, applies to all questions up to the next page.
    pub show_if: Option<Condition>,
    /// When an answer is required even if `required` is false.
    pub required_if: Option<Condition>,
    pub settings: QuestionSettings,
}

/// The settings of a question that are set, in the order in which its type reads them, each as JSON text.
pub type QuestionSettings = Vec<(&'static str, Box<RawValue>)>;

impl Question {
    /// Checks `answer` at the time `now` and returns all errors: none if it is valid, or empty and not `required`.
    pub fn check(
        &self,
        answer: Option<&Value>,
        required: bool,
        limits: &Limits,
        now: Timestamp,
        texts: &Texts,
    ) -> Vec<AnswerError> {
        let rules = self.kind.rules();
        let Some(answer) = answer.filter(|answer| !rules.is_empty(answer)) else {
            return match answer {
                _ if required => vec![AnswerError::required(&self.title, texts)],
                Some(empty) => rules.check_empty(empty, texts),
                None => Vec::new(),
            };
        };
        if let Some(error) = too_large(answer, limits, texts) {
            return vec![error];
        }
        rules.check(answer, Some(now), texts)
    }

    pub fn takes_answer(&self) -> bool {
        self.kind.rules().takes_answer()
    }

    /// Returns what `find` returns for its id, or else for the first of the ids that it had before.
    pub fn find_answer<T>(&self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.id.iter().chain(&self.was).find_map(|id| find(id))
    }

    pub fn setting(&self, name: &str) -> Option<Value> {
        let (_, written) = self.settings.iter().find(|(known, _)| *known == name)?;
        parse(written.get()).ok()
    }

    /// Returns an item for each text search: the pattern of its own `pattern` and of each `matches` of its conditions, and
    /// `None` for each `includes`.
    pub(super) fn text_searches(&self) -> impl Iterator<Item = Option<&Pattern>> {
        let own = self.kind.rules().pattern().map(Some);
        own.into_iter().chain(self.conditions().flat_map(|(_, condition)| condition.text_searches()))
    }

    /// Its conditions with the names of their members.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Condition)> {
        let conditions = [("show_if", &self.show_if), ("required_if", &self.required_if)];
        conditions.into_iter().filter_map(|(name, condition)| Some((name, condition.as_ref()?)))
    }
}

/// Returns an error if `answer` is too large for any question, and so is not checked further.
pub(super) fn too_large(answer: &Value, limits: &Limits, texts: &Texts) -> Option<AnswerError> {
    let (size, longest_number) = measure(answer);
    let message = if size > limits.answer {
        fill(texts.at_most_bytes, &[("max", &limits.answer)])
    } else if longest_number > MAX_NUMBER {
        fill(texts.number_characters, &[("max", &MAX_NUMBER)])
    } else {
        return None;
    };
    Some(AnswerError::new(Rule::TooLong, message))
}

/// Returns the size of an answer, the bytes of its texts, names and numbers plus one for each item, and the length of its
/// longest number.
fn measure(answer: &Value) -> (usize, usize) {
    let add = |(size, longest): (usize, usize), name: &str, value| {
        let (more, length) = measure(value);
        (size + 1 + name.len() + more, longest.max(length))
    };
    match answer {
        Value::Null | Value::Bool(_) => (0, 0),
        Value::Number(number) => (number.text().len(), number.text().len()),
        Value::String(text) => (text.len(), 0),
        Value::Array(items) => items.iter().fold((0, 0), |sum, item| add(sum, "", item)),
        Value::Object(members) => members.iter().fold((0, 0), |sum, (name, value)| add(sum, name, value)),
    }
}

/// Parses typed `text` as JSON if the value is `wanted`; otherwise returns the text itself.
fn json_or_text(text: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    parse(text).ok().filter(wanted).unwrap_or_else(|| text.into())
}

/// Whether `answer` counts as no answer: white space, `null`, `[]` or `{}`.
pub fn is_empty(answer: &Value) -> bool {
    match answer {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Serializes in canonical form: `id`, `was`, `type`, `title`, `required` (if present), then only members that are set.
impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        match &self.was[..] {
            [] => {}
            [id] => map.serialize_entry("was", id)?,
            ids => map.serialize_entry("was", ids)?,
        }
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("title", &self.title)?;
        if self.takes_answer() {
            map.serialize_entry("required", &self.required)?;
        }
        if let Some(description) = &self.description {
            map.serialize_entry("description", description)?;
        }
        for (name, condition) in self.conditions() {
            map.serialize_entry(name, condition)?;
        }
        for (name, value) in &self.settings {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
