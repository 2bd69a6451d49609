//! Questions: what may be asked, with which settings, and which answers fit.
//!
//! A kind of question is a file that implements [`Rules`], a row in the table of [`QuestionKind`]s, and its settings' places in
//! the canonical order.

mod boolean;
mod calendar;
mod choice;
mod display_only;
mod draft;
mod email;
mod hidden;
pub(super) mod json;
mod kind;
mod labels;
mod matrix;
mod number;
mod options;
mod phone;
mod scale;
mod text;
mod typed_text;
mod url;

pub use draft::{MAX_DESCRIPTION, QuestionDraft};
pub use kind::QuestionKind;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::domain::condition::{Condition, LintInput, ValueType};
use crate::domain::json::{Value, parse};
use crate::domain::pattern::Pattern;
use crate::domain::validation::limits::{Limits, MAX_MATCHED, MAX_NUMBER};
use crate::domain::validation::violation::{Rule, join};

/// What the kinds of question have in common.
pub trait Rules: fmt::Debug + Send + Sync {
    /// Reports all that is wrong with `answer`, which is not empty; nothing if it fits. `now` is for bounds such as
    /// `today`; without it they are left out, and what remains is wrong on every day.
    fn check(&self, answer: &Value, now: Option<Timestamp>) -> Vec<AnswerError>;

    /// Whether `answer` counts as none.
    fn is_empty(&self, answer: &Value) -> bool {
        is_empty(answer)
    }

    /// Reports what is wrong with an `answer` that counts as none, where none is required.
    fn check_empty(&self, _answer: &Value) -> Vec<AnswerError> {
        Vec::new()
    }

    /// The JSON Schema (2020-12) of the answers that fit, as exact as it can say. It takes no empty ones.
    fn schema(&self) -> Value;

    /// An answer that fits a question of this kind with only the settings it must have.
    fn example(&self) -> Value;

    /// What a person is to enter, in a few words: `a whole number from 1 to 5`.
    fn expects(&self) -> String;

    /// The answer that `text` stands for where a person types it; the text itself if it stands for none, so that it is
    /// told what is wrong with it.
    fn parse_text(&self, text: &str) -> Value {
        text.into()
    }

    /// What the texts of its answers stand for, where conditions compare them.
    fn value_type(&self) -> ValueType {
        ValueType::Text
    }

    /// Whether an answer may be text as well as what the text stands for, so that nobody knows how it will compare.
    fn is_untyped(&self) -> bool {
        false
    }

    /// The least and the greatest that can be an answer, on every day, as far as there are such.
    fn range(&self) -> [Option<Value>; 2] {
        [None, None]
    }

    /// The pattern that an answer must match.
    fn pattern(&self) -> Option<&Pattern> {
        None
    }

    /// Characters up to which an answer is held against patterns: no longer text matches any.
    fn max_length(&self) -> usize {
        MAX_MATCHED
    }

    /// Whether there can be an answer.
    fn takes_answer(&self) -> bool {
        true
    }

    /// Whether people see it where it is asked.
    fn is_shown(&self) -> bool {
        true
    }

    /// Whether it can be answered in words that are no option, `{"other":"text"}`.
    fn takes_other(&self) -> bool {
        false
    }

    /// The names that `rule`, broken by an answer, chooses from: options, or the rows of a matrix.
    fn allowed_values(&self, _rule: Rule) -> Vec<&str> {
        Vec::new()
    }

    /// The answer that is kept where none was sent.
    fn default_answer(&self) -> Option<&Value> {
        None
    }
}

/// Why one answer does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerError {
    /// JSON pointer (RFC 6901) from the answer to the part that is wrong; empty if it is the whole.
    pub at: String,
    /// The broken rule.
    pub rule: Rule,
    /// What would be right, for the person who answers.
    pub message: String,
}

impl AnswerError {
    fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { at: String::new(), rule, message: message.into() }
    }

    /// The same, about the member or item `key` of what it was about.
    fn within(self, key: &str) -> Self {
        Self { at: join("", key) + &self.at, ..self }
    }
}

/// One question of a form.
#[derive(Debug, Clone)]
pub struct Question {
    /// The key of its answers, unique in the form and never given to another question. `None` for a statement or a
    /// page whose author gave none.
    pub id: Option<String>,
    /// What is asked for.
    pub kind: QuestionKind,
    /// The text of the question.
    pub title: String,
    /// More about it, in Markdown.
    pub description: Option<String>,
    /// Whether a submission must have an answer, where the question is asked.
    pub required: bool,
    /// Where it is asked, or, of a page, all up to the next page; everywhere if `None`.
    pub show_if: Option<Condition>,
    /// Where it must have an answer even if it is not `required`.
    pub required_if: Option<Condition>,
    /// The settings that its kind has besides.
    pub settings: QuestionSettings,
}

/// The settings of a question that were set, by name in canonical order, each as its JSON is written.
pub type QuestionSettings = Vec<(&'static str, Box<RawValue>)>;

impl Question {
    /// Reports all that is wrong with `answer` at the time `now`: nothing if it fits, or is empty and not `required`.
    pub fn check(
        &self,
        answer: Option<&Value>,
        required: bool,
        limits: &Limits,
        now: Timestamp,
    ) -> Vec<AnswerError> {
        let rules = self.kind.rules();
        let Some(answer) = answer.filter(|answer| !rules.is_empty(answer)) else {
            return match answer {
                _ if required => {
                    vec![AnswerError::new(Rule::Required, format!("\"{}\" needs an answer", self.title))]
                }
                Some(empty) => rules.check_empty(empty),
                None => Vec::new(),
            };
        };
        if let Some(error) = too_large(answer, limits) {
            return vec![error];
        }
        rules.check(answer, Some(now))
    }

    /// Its conditions, with what the judgement on them needs.
    pub fn lint_input(&self) -> LintInput<'_> {
        LintInput { id: self.id.as_deref(), kind: Some(&self.kind), conditions: self.conditions().collect() }
    }

    /// The setting `name`, if it was set.
    pub fn setting(&self, name: &str) -> Option<Value> {
        let (_, written) = self.settings.iter().find(|(known, _)| *known == name)?;
        parse(written.get()).ok()
    }

    /// Calls `see` for each `includes` of its conditions, with `None`, and for its own pattern and each `matches`.
    pub(super) fn for_each_text_search<'a>(&'a self, visit: &mut dyn FnMut(Option<&'a Pattern>)) {
        self.kind.rules().pattern().into_iter().for_each(|pattern| visit(Some(pattern)));
        self.conditions().for_each(|(_, condition)| condition.for_each_text_search(visit));
    }

    /// Its conditions by the members they stand in.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Condition)> {
        let conditions = [("show_if", &self.show_if), ("required_if", &self.required_if)];
        conditions.into_iter().filter_map(|(name, condition)| Some((name, condition.as_ref()?)))
    }
}

/// Why `answer` is not looked at any further, whatever is asked for.
pub(super) fn too_large(answer: &Value, limits: &Limits) -> Option<AnswerError> {
    let message = if size(answer) > limits.answer {
        format!("An answer may have {} bytes at most", limits.answer)
    } else if longest_number(answer) > MAX_NUMBER {
        format!("A number may have {MAX_NUMBER} characters at most")
    } else {
        return None;
    };
    Some(AnswerError::new(Rule::TooLong, message))
}

/// Characters of the longest number in `answer`.
fn longest_number(answer: &Value) -> usize {
    match answer {
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
        Value::Number(number) => number.text().len(),
        Value::Array(items) => items.iter().map(longest_number).max().unwrap_or(0),
        Value::Object(members) => members.iter().map(|(_, value)| longest_number(value)).max().unwrap_or(0),
    }
}

/// How large an answer is: the bytes of its texts, names and numbers, and one for each item.
fn size(answer: &Value) -> usize {
    match answer {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => number.text().len(),
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 1 + size(item)).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| 1 + name.len() + size(value)).sum(),
    }
}

/// Whether `answer` counts as none: white space, `null`, `[]`, `{}`.
pub fn is_empty(answer: &Value) -> bool {
    match answer {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// In canonical form: `id`, `type`, `title`, `required` (as far as it has them), then only what was set.
impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("title", &self.title)?;
        if self.kind.rules().takes_answer() {
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
