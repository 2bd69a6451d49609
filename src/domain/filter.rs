//! Which forms a list has, and which submissions.

use std::collections::BTreeMap;
use std::ops::Bound;

use regex::{Regex, RegexBuilder};

use super::condition::{Answer, Condition, Sense, Wanted};
use super::form::{Form, Status};
use super::json::{self, Object, Value};
use super::question::{Kind, Question, is_empty};
use super::submission::SubmissionStatus;
use crate::clock::Timestamp;
use crate::id::SubmissionId;

/// What is asked of every form in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormFilter {
    /// Those in the trash instead of those outside it.
    pub trashed: bool,
    pub status: Option<Status>,
    /// Stands in the title, in capitals or not.
    pub title: Option<String>,
}

impl FormFilter {
    /// Whether the list has `form`.
    pub fn matches(&self, form: &Form) -> bool {
        let title = self.title.as_ref().map(|title| title.to_lowercase());
        form.deleted_at.is_some() == self.trashed
            && self.status.is_none_or(|status| form.status == status)
            && title.is_none_or(|title| form.title.to_lowercase().contains(&title))
    }

    /// Whether all forms in the trash, or all outside it, are in the list.
    pub fn takes_all(&self) -> bool {
        self.status.is_none() && self.title.is_none()
    }

    /// The moment that gives `form` its place in the list.
    pub fn moment(&self, form: &Form) -> Timestamp {
        form.deleted_at.filter(|_| self.trashed).unwrap_or(form.created_at)
    }
}

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
    pub answers: BTreeMap<Wanted, String>,
}

/// The same, ready to be decided for one submission after another.
#[derive(Debug, Clone, Default)]
pub struct SubmissionFilter {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    text: Option<Regex>,
    /// Of each of these, one must hold.
    answers: Vec<Vec<Asking>>,
    /// Bytes of values that are read again for each submission.
    values: usize,
}

/// Bytes of values that are read in about the time of a short answer.
const VALUES: usize = 64;

/// The same of finding an answer.
const FINDING: usize = 4;

/// A condition, and how the answers are read that it looks at, by the ids of their questions.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    condition: Condition,
    readings: Vec<(String, Reading)>,
}

/// What matters of a question's kind once its answers are stored: not its options, of which there may be very many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reading {
    /// What texts stand for.
    sense: Sense,
    /// Whether `false` counts as an answer.
    takes_false: bool,
}

impl SubmissionFilter {
    /// Makes `query` ready for a form with these questions; what is wrong with it, if it can take no submission.
    pub fn new(query: &SubmissionQuery, questions: &[Question]) -> Result<Self, String> {
        let answers = (!query.answers.is_empty()).then(|| Asking::new(&query.answers, questions));
        Self::asking(query, answers.transpose()?.map(|asking| vec![asking]).into_iter().collect())
    }

    /// The same, where one of each of `answers` is to hold in place of the query's tests.
    pub(super) fn asking(query: &SubmissionQuery, answers: Vec<Vec<Asking>>) -> Result<Self, String> {
        // There is one status, so whatever was asked for is what every submission has.
        let SubmissionQuery { since, until, status: _, text, answers: _ } = query;
        let text = text.as_deref().filter(|text| !text.is_empty()).map(any_case).transpose()?;
        let values = query.answers.iter().map(|(wanted, text)| read_again(wanted, text)).sum::<usize>()
            + FINDING * answers.iter().flatten().count();
        Ok(Self { since: *since, until: *until, text, answers, values })
    }

    /// Whether it takes every submission.
    pub fn takes_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && !self.reads_answers()
    }

    /// Whether it has to look at answers, and not at ids alone.
    pub fn reads_answers(&self) -> bool {
        self.text.is_some() || !self.answers.is_empty()
    }

    /// How many times as long as reading an answer it takes to decide on it, about.
    pub fn weight(&self) -> usize {
        let searches = self.answers.iter().flatten().map(|asking| asking.condition.searches());
        1 + searches.sum::<usize>() + self.values / VALUES
    }

    /// Between which ids all submissions lie that it takes: an id holds the moment.
    pub fn ids(&self) -> (Bound<SubmissionId>, Bound<SubmissionId>) {
        let first = |moment: Timestamp| SubmissionId::first_of(moment.millis());
        (
            self.since.map_or(Bound::Unbounded, |since| Bound::Included(first(since))),
            self.until.map_or(Bound::Unbounded, |until| Bound::Excluded(first(until))),
        )
    }

    /// Whether it takes a submission that lies between [`ids`](Self::ids) and has these answers, a JSON object. Most
    /// texts are not read as JSON for that.
    pub fn takes(&self, answers: &str) -> bool {
        if !self.reads_answers() {
            return true;
        }
        // Only with escapes can a text be other than it is written.
        let may_have = |text: &Regex| text.is_match(answers) || answers.contains('\\');
        if !self.text.as_ref().is_none_or(may_have) {
            return false;
        }
        let Ok(Value::Object(members)) = json::parse(answers) else { return false };
        self.answers.iter().all(|one_of| one_of.iter().any(|asking| asking.holds(&members)))
            && self.text.as_ref().is_none_or(|text| members.iter().any(|(_, value)| has(value, text)))
    }
}

impl Asking {
    /// Asks all that is `wanted` of the answers to `questions`; what is wrong with it, if that can never hold.
    pub(super) fn new(wanted: &BTreeMap<Wanted, String>, questions: &[Question]) -> Result<Self, String> {
        let condition = Condition::wanted(wanted, questions)?;
        let is_named = |id: &String| wanted.keys().any(|wanted| wanted.question == *id);
        let reading =
            |question: &Question| Some((question.id.clone().filter(is_named)?, Reading::of(&question.kind)));
        Ok(Self::ready(condition, questions.iter().filter_map(reading).collect()))
    }

    /// Asks what is `wanted` for `values`, which fit answers that are read so; `None` if they do not.
    pub(super) fn of_values(wanted: &Wanted, reading: Reading, values: Vec<Value>) -> Option<Self> {
        Some(Self::ready(wanted.condition(values)?, vec![(wanted.question.clone(), reading)]))
    }

    fn ready(mut condition: Condition, readings: Vec<(String, Reading)>) -> Self {
        condition.learn(&|id| find(&readings, id).map_or(Sense::Text, |reading| reading.sense));
        Self { condition, readings }
    }

    fn holds(&self, answers: &Object) -> bool {
        self.condition.holds(&|id| find(&self.readings, id)?.answer(find(answers, id)?))
    }
}

impl Reading {
    pub(super) fn of(kind: &Kind) -> Self {
        let rules = kind.rules();
        // A filter is text: nothing tells whether a number was meant.
        let sense = if rules.is_untyped() { Sense::Typed } else { rules.sense() };
        Self { sense, takes_false: !rules.is_empty(&false.into()) }
    }

    /// `value` as an answer, unless it counts as none.
    fn answer(self, value: &Value) -> Option<Answer<'_>> {
        let is_none = match value {
            Value::Bool(false) => !self.takes_false,
            // That of a matrix, whose rows were known when it was stored.
            Value::Object(rows) => rows.iter().all(|(_, row)| is_empty(row)),
            _ => is_empty(value),
        };
        (!is_none).then_some(Answer { value, sense: self.sense })
    }
}

fn find<'a, T>(all: &'a [(String, T)], id: &str) -> Option<&'a T> {
    all.iter().find(|(known, _)| known == id).map(|(_, found)| found)
}

/// Bytes of a test's value that are read again for each answer.
fn read_again(wanted: &Wanted, text: &str) -> usize {
    // Lists are looked up.
    let bytes = if wanted.operator == "in" { 0 } else { text.len() };
    bytes.max(FINDING)
}

/// A pattern that finds `text`, in capitals or not.
fn any_case(text: &str) -> Result<Regex, String> {
    let pattern = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
    pattern.map_err(|_too_big| format!("`q` has {} characters, which are too many", text.chars().count()))
}

/// Whether `text` stands in a text of `answer`.
fn has(answer: &Value, text: &Regex) -> bool {
    match answer {
        Value::String(found) => text.is_match(found),
        Value::Array(items) => items.iter().any(|item| has(item, text)),
        Value::Object(members) => members.iter().any(|(_, value)| has(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::limits::Limits;
    use crate::domain::question::QuestionDraft;

    #[test]
    fn long_values_weigh_but_for_lists_that_are_looked_up() {
        let written = json::parse(r#"{"id":"from","type":"hidden"}"#).unwrap();
        let draft = QuestionDraft::read(&written, "", 0, &Limits::default(), &mut Vec::new());
        let questions = [draft.unwrap().kept().unwrap()];
        for (tests, expected) in [
            (&[("eq", "web")][..], 1),
            (&[("eq", "web"), ("in", "1,2"), ("lt", "3"), ("answered", "true")], 1),
            (&[("eq", &"9".repeat(6_400))], 101),
            (&[("gt", &"9".repeat(640)), ("lt", &"9".repeat(640))], 21),
            (&[("in", &"1,1".repeat(3_000))], 1),
            (&[("includes", "1"), ("matches", "1")], 1 + 1 + Condition::PATTERN),
        ] {
            let wanted =
                |operator: &str| Wanted { question: "from".to_owned(), operator: operator.to_owned() };
            let answers =
                tests.iter().map(|(operator, text)| (wanted(operator), (*text).to_owned())).collect();
            let query = SubmissionQuery { answers, ..SubmissionQuery::default() };
            let filter = SubmissionFilter::new(&query, &questions).unwrap();
            assert_eq!(
                filter.weight(),
                expected,
                "{:?}",
                tests.iter().map(|(name, _)| name).collect::<Vec<_>>()
            );
        }
    }
}
