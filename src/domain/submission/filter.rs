//! Which submissions a list has.

use std::collections::BTreeMap;
use std::ops::Bound;

use regex::{Regex, RegexBuilder};

use crate::clock::Timestamp;
use crate::domain::condition::{Answer, Condition, FilterKey, ValueType};
use crate::domain::json::{self, Object, Value};
use crate::domain::question::{Question, QuestionKind, is_empty};
use crate::domain::submission::SubmissionStatus;
use crate::domain::validation::limits::MAX_MATCHED;
use crate::domain::validation::violation::{Rule, Violation};
use crate::id::SubmissionId;

/// In which order a list comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// What is asked of every submission in a list, as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmissionQuery {
    /// Those of this moment and later.
    pub since: Option<Timestamp>,
    /// Those before this moment.
    pub until: Option<Timestamp>,
    pub status: Option<SubmissionStatus>,
    /// Stands in a text of the answers, in capitals or not.
    pub text: Option<String>,
    /// Values, by question and operator.
    pub answers: BTreeMap<FilterKey, String>,
}

/// A [`SubmissionQuery`], ready to be decided for one submission after another.
#[derive(Debug, Clone, Default)]
pub struct SubmissionFilter {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    text: Option<Regex>,
    answers: Option<FilterClause>,
}

/// A condition, and how the answers that it names are read.
#[derive(Debug, Clone)]
struct FilterClause {
    condition: Condition,
    /// By the ids of questions.
    types: Vec<(String, AnswerType)>,
}

/// What matters of a question's kind once its answers are stored: not its options, of which there may be very many.
#[derive(Debug, Clone, Copy)]
struct AnswerType {
    value_type: ValueType,
    /// Whether `false` counts as an answer.
    takes_false: bool,
}

impl SubmissionFilter {
    /// Prepares `query` for a form that asks `questions`.
    ///
    /// # Errors
    /// Why no submission can match it, if that is so. Pointers lead into the query, an object of its parameters.
    pub fn new(query: &SubmissionQuery, questions: &[Question]) -> Result<Self, Vec<Violation>> {
        // There is one status, so whatever was asked for is what every submission has.
        let SubmissionQuery { since, until, status: _, text, answers } = query;
        let text = text.as_deref().filter(|text| !text.is_empty()).map(case_insensitive).transpose()?;
        let answers = (!answers.is_empty()).then(|| FilterClause::new(answers, questions)).transpose()?;
        Ok(Self { since: *since, until: *until, text, answers })
    }

    /// Whether it takes every submission.
    pub fn matches_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && !self.reads_answers()
    }

    /// Whether it has to look at answers, and not at ids alone.
    pub fn reads_answers(&self) -> bool {
        self.text.is_some() || self.answers.is_some()
    }

    /// Between which ids all submissions lie that it takes: an id holds the moment.
    pub fn id_range(&self) -> (Bound<SubmissionId>, Bound<SubmissionId>) {
        let first = |moment: Timestamp| SubmissionId::first_of(moment.millis());
        (
            self.since.map_or(Bound::Unbounded, |since| Bound::Included(first(since))),
            self.until.map_or(Bound::Unbounded, |until| Bound::Excluded(first(until))),
        )
    }

    /// Whether it takes a submission that lies between [`ids`](Self::id_range) and has these answers, a JSON object. Most
    /// texts are not read as JSON for that.
    pub fn matches(&self, answers: &str) -> bool {
        if !self.reads_answers() {
            return true;
        }
        // Only with escapes can a text be other than it is written.
        let may_have = |text: &Regex| text.is_match(answers) || answers.contains('\\');
        if !self.text.as_ref().is_none_or(may_have) {
            return false;
        }
        let Ok(Value::Object(members)) = json::parse(answers) else { return false };
        self.answers.as_ref().is_none_or(|clause| clause.holds(&members))
            && self
                .text
                .as_ref()
                .is_none_or(|text| members.iter().any(|(_, value)| contains_text(value, text)))
    }
}

impl FilterClause {
    fn new(tests: &BTreeMap<FilterKey, String>, questions: &[Question]) -> Result<Self, Vec<Violation>> {
        let mut condition = Condition::from_filter(tests, questions)?;
        condition.prepare();
        let is_named = |id: &String| tests.keys().any(|key| key.question == *id);
        let named = |question: &Question| {
            Some((question.id.clone().filter(is_named)?, AnswerType::of(&question.kind)))
        };
        Ok(Self { condition, types: questions.iter().filter_map(named).collect() })
    }

    fn holds(&self, answers: &Object) -> bool {
        self.condition.holds(&|id| find(&self.types, id)?.answer(find(answers, id)?))
    }
}

impl AnswerType {
    fn of(kind: &QuestionKind) -> Self {
        let rules = kind.rules();
        // A filter is text: nothing tells whether a number was meant.
        let value_type = if rules.is_untyped() { ValueType::Untyped } else { rules.value_type() };
        Self { value_type, takes_false: !rules.is_empty(&false.into()) }
    }

    /// `value` as an answer, unless it counts as none.
    fn answer(self, value: &Value) -> Option<Answer<'_>> {
        let is_none = match value {
            Value::Bool(false) => !self.takes_false,
            // That of a matrix, whose rows were known when it was stored.
            Value::Object(rows) => rows.iter().all(|(_, row)| is_empty(row)),
            _ => is_empty(value),
        };
        (!is_none).then_some(Answer { value, value_type: self.value_type, max_length: MAX_MATCHED })
    }
}

fn find<'a, T>(all: &'a [(String, T)], id: &str) -> Option<&'a T> {
    all.iter().find(|(known, _)| known == id).map(|(_, found)| found)
}

/// A pattern that finds `text`, in capitals or not.
fn case_insensitive(text: &str) -> Result<Regex, Vec<Violation>> {
    let pattern = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
    pattern.map_err(|_too_big| {
        let message = format!("{} characters are too many", text.chars().count());
        vec![Violation::new("/q", Rule::TooLong, message)]
    })
}

/// Whether `text` stands in a text of `answer`.
fn contains_text(answer: &Value, text: &Regex) -> bool {
    match answer {
        Value::String(found) => text.is_match(found),
        Value::Array(items) => items.iter().any(|item| contains_text(item, text)),
        Value::Object(members) => members.iter().any(|(_, value)| contains_text(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
