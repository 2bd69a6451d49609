//! The filter of a list of submissions.

use std::collections::BTreeMap;
use std::ops::Bound;

use regex::{Regex, RegexBuilder};

use crate::clock::Timestamp;
use crate::domain::condition::{Answer, Condition, FilterKey, ValueType};
use crate::domain::json::{self, Object, Value};
use crate::domain::question::{Question, is_empty};
use crate::domain::submission::SubmissionStatus;
use crate::domain::validation::limits::MAX_MATCHED;
use crate::domain::validation::violation::{Rule, Violation};
use crate::id::SubmissionId;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// Criteria that every submission in a list satisfies, as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmissionQuery {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub status: Option<SubmissionStatus>,
    /// Text contained in an answer, ignoring case.
    pub text: Option<String>,
    /// Values, by question and operator.
    pub answers: BTreeMap<FilterKey, String>,
}

/// A compiled [`SubmissionQuery`].
#[derive(Debug, Clone, Default)]
pub struct SubmissionFilter {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    text: Option<Regex>,
    answers: Option<FilterClause>,
}

/// A condition, and the questions that it tests.
#[derive(Debug, Clone)]
struct FilterClause {
    condition: Condition,
    questions: Vec<Question>,
}

impl SubmissionFilter {
    /// Prepares `query` for a form that asks `questions`.
    ///
    /// # Errors
    /// Why no submission can match it, if that is so. Pointers lead into the query, an object of its parameters.
    pub fn new(query: &SubmissionQuery, questions: &[Question]) -> Result<Self, Vec<Violation>> {
        // Those of another status are in a list of their own.
        let SubmissionQuery { since, until, status: _, text, answers } = query;
        let text = text.as_deref().filter(|text| !text.is_empty()).map(case_insensitive).transpose()?;
        let answers = (!answers.is_empty()).then(|| FilterClause::new(answers, questions)).transpose()?;
        Ok(Self { since: *since, until: *until, text, answers })
    }

    pub fn matches_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && !self.reads_answers()
    }

    /// Whether the filter tests answers, and not only ids.
    pub fn reads_answers(&self) -> bool {
        self.text.is_some() || self.answers.is_some()
    }

    /// The range of the ids of all matching submissions: an id contains the time.
    pub fn id_range(&self) -> (Bound<SubmissionId>, Bound<SubmissionId>) {
        let first = |moment: Timestamp| SubmissionId::first_of(moment.millis());
        (
            self.since.map_or(Bound::Unbounded, |since| Bound::Included(first(since))),
            self.until.map_or(Bound::Unbounded, |until| Bound::Excluded(first(until))),
        )
    }

    /// Whether a submission within the [range of ids](Self::id_range) with these answers, a JSON object, matches. Most texts
    /// are ruled out without parsing them.
    pub fn matches(&self, answers: &str) -> bool {
        self.text.as_ref().is_none_or(|text| object_has_text(answers, text)) && self.holds(answers)
    }

    /// Whether a submission matches if names, numbers and metadata count as text, too.
    pub fn matches_anywhere(&self, answers: &str, metadata: Option<&str>) -> bool {
        let has_text = |text| {
            let mut parsed =
                [Some(answers), metadata].into_iter().flatten().filter_map(|one| json::parse(one).ok());
            parsed.any(|value| mentions(&value, text))
        };
        self.text.as_ref().is_none_or(has_text) && self.holds(answers)
    }

    fn holds(&self, answers: &str) -> bool {
        let Some(clause) = &self.answers else { return true };
        matches!(json::parse(answers), Ok(Value::Object(members)) if clause.holds(&members))
    }
}

impl FilterClause {
    fn new(tests: &BTreeMap<FilterKey, String>, questions: &[Question]) -> Result<Self, Vec<Violation>> {
        let mut condition = Condition::from_filter(tests, questions)?;
        condition.prepare();
        let is_named = |id: &String| tests.keys().any(|key| key.question == *id);
        let named = questions.iter().filter(|question| question.id.as_ref().is_some_and(is_named));
        Ok(Self { condition, questions: named.cloned().collect() })
    }

    fn holds(&self, answers: &Object) -> bool {
        self.condition.holds(&|id| {
            let question = self.questions.iter().find(|question| question.id.as_deref() == Some(id))?;
            let (rules, value) = (question.kind.rules(), question.find_answer(|id| find(answers, id))?);
            let is_none = match value {
                // A matrix, whose rows were checked when it was stored.
                Value::Object(rows) => rows.iter().all(|(_, row)| is_empty(row)),
                _ => rules.is_empty(value),
            };
            // Filter values are text; that of an untyped question may stand for a number.
            let value_type = if rules.is_untyped() { ValueType::Untyped } else { rules.value_type() };
            (!is_none).then_some(Answer { value, value_type, max_length: MAX_MATCHED })
        })
    }
}

fn find<'a>(answers: &'a Object, id: &str) -> Option<&'a Value> {
    answers.iter().find(|(known, _)| known == id).map(|(_, found)| found)
}

fn case_insensitive(text: &str) -> Result<Regex, Vec<Violation>> {
    let pattern = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
    pattern.map_err(|_too_big| {
        let message = format!("{} characters are too many", text.chars().count());
        vec![Violation::new("/q", Rule::TooLong, message)]
    })
}

/// Whether a value of `object`, in JSON, has the text. Most are ruled out without parsing them: without escapes, a text is
/// contained verbatim.
fn object_has_text(object: &str, text: &Regex) -> bool {
    let may_have = text.is_match(object) || object.contains('\\');
    may_have && json::parse(object).is_ok_and(|value| contains_text(&value, text))
}

/// Whether a text, a number, or the name of a member has the text.
fn mentions(value: &Value, text: &Regex) -> bool {
    match value {
        Value::Number(number) => text.is_match(number.text()),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| text.is_match(name) || mentions(value, text))
        }
        Value::String(_) | Value::Null | Value::Bool(_) => contains_text(value, text),
    }
}

fn contains_text(answer: &Value, text: &Regex) -> bool {
    match answer {
        Value::String(found) => text.is_match(found),
        Value::Array(items) => items.iter().any(|item| contains_text(item, text)),
        Value::Object(members) => members.iter().any(|(_, value)| contains_text(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
