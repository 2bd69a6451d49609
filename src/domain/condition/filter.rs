//! Conditions built from the filter parameters of a list: question, operator and value as text.

use std::collections::BTreeMap;

use crate::domain::condition::lint::{inclusion_error, value_error};
use crate::domain::condition::{Clause, Condition, lint_condition};
use crate::domain::json::{Object, Value};
use crate::domain::question::{Question, Rules};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::{Limits, MAX_FILTER_TESTS, MAX_FILTER_VALUES};
use crate::domain::validation::violation::{Rule, Violation, join, shortened};

/// The question and operator of one test in a filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterKey {
    pub question: String,
    pub operator: String,
}

const MAX_REPORTED: usize = 20;

/// Name of the condition in pointers: `/filter/score/gte`.
const NAME: &str = "filter";

/// Maximum characters of all patterns in a filter: compiling them takes up to 50 ms.
const MAX_PATTERN_TEXT: usize = 1_000;

impl Condition {
    /// Builds the conjunction of `tests`. Their values are parsed according to the types of `questions`.
    ///
    /// # Errors
    /// All violations: too many tests or values, an unknown question or operator, a value that is not valid or that no
    /// answer can have. Pointers lead into `{"filter": {"score": {"gte": …}}}`.
    pub fn from_filter(
        tests: &BTreeMap<FilterKey, String>,
        questions: &[Question],
    ) -> Result<Self, Vec<Violation>> {
        refuse_many(tests)?;
        let mut budget = Budget::new(&Limits { pattern_text: MAX_PATTERN_TEXT, ..Limits::default() });
        let (mut members, mut clauses) = (Object::new(), Vec::new());
        let (mut unknown, mut malformed, mut impossible) = (Vec::new(), Vec::new(), Vec::new());
        for (FilterKey { question: id, operator }, text) in tests {
            let Some(question) = answered(questions).find(|question| question.id.as_ref() == Some(id)) else {
                unknown.push(unknown_question(id, questions));
                continue;
            };
            let operand = operand(question.kind.rules(), operator, text);
            let test = (id.clone(), Value::Object(vec![(operator.clone(), operand)]));
            let (written, mut found, mut linted) =
                (Value::Object(vec![test.clone()]), Vec::new(), Vec::new());
            let condition = Self::parse(&written, String::new(), &mut budget, &mut found);
            lint_condition(&condition, questions, "", &mut linted);
            let convert = |violation| of_parameter(violation, id, operator, text);
            malformed.extend(found.into_iter().map(convert));
            impossible.extend(linted.into_iter().map(convert));
            members.push(test);
            if let Clause::All(mut tests) = condition.root {
                clauses.append(&mut tests);
            }
        }
        let mut reported = Vec::new();
        for error in unknown.into_iter().chain(malformed).chain(impossible) {
            if reported.len() < MAX_REPORTED && !reported.contains(&error) {
                reported.push(error);
            }
        }
        let (written, root, matched) = (Value::Object(members), Clause::All(clauses), budget.limits.matched);
        if reported.is_empty() { Ok(Self { written, root, matched }) } else { Err(reported) }
    }
}

fn refuse_many(tests: &BTreeMap<FilterKey, String>) -> Result<(), Vec<Violation>> {
    let count = |(key, text): (&FilterKey, &String)| match key.operator.as_str() {
        "in" => text.split(',').count(),
        _ => 1,
    };
    let values: usize = tests.iter().map(count).sum();
    for (found, allowed, of) in
        [(tests.len(), MAX_FILTER_TESTS, "tests"), (values, MAX_FILTER_VALUES, "values")]
    {
        if found > allowed {
            let message = format!("the filter has {found} {of}, {allowed} are allowed");
            return Err(vec![Violation::new(join("", NAME), Rule::TooMany, message)]);
        }
    }
    Ok(())
}

fn answered(questions: &[Question]) -> impl Iterator<Item = &Question> {
    questions.iter().filter(|question| question.takes_answer())
}

fn unknown_question(id: &str, questions: &[Question]) -> Violation {
    let message = format!("`{}` is not a question of this form that takes an answer", shortened(id));
    let ids = answered(questions).filter_map(|question| question.id.as_deref());
    Violation::new(join(&join("", NAME), id), Rule::UnknownQuestion, message).allowed(id, ids)
}

fn operand(rules: &dyn Rules, operator: &str, text: &str) -> Value {
    match (operator, text) {
        ("answered", "true") => true.into(),
        ("answered", "false") => false.into(),
        ("in", _) => text.split(',').map(|item| equal(rules, item)).collect(),
        ("eq" | "ne", _) => equal(rules, text),
        ("includes", _) => chosen(rules, text.into(), text, inclusion_error),
        ("answered" | "matches", _) => text.into(),
        _ => rules.parse_text(text),
    }
}

/// Converts `text` to a value that answers are compared with.
fn equal(rules: &dyn Rules, text: &str) -> Value {
    chosen(rules, rules.parse_text(text), text, value_error)
}

/// Returns `value`, or `text` as free text if `value` is not an option and free text is accepted.
fn chosen(
    rules: &dyn Rules,
    value: Value,
    text: &str,
    error: impl Fn(&dyn Rules, &Value) -> Option<String>,
) -> Value {
    let other = || Value::Object(vec![("other".to_owned(), text.into())]);
    let is_other = rules.takes_other() && error(rules, &value).is_some();
    is_other.then(other).filter(|other| error(rules, other).is_none()).unwrap_or(value)
}

/// Converts a violation of a test to one of the parameter with the value `text` that the test comes from.
fn of_parameter(violation: Violation, question: &str, operator: &str, text: &str) -> Violation {
    let help = match violation.help {
        _ if text.trim().is_empty() => Some("the operator `answered` with `false` asks for no answer"),
        // The help for a condition suggests JSON.
        Some(help) if help.starts_with("write `{") => Some("the operator `includes` tests one option"),
        _ => None,
    };
    let pointer = join(&join(&join("", NAME), question), operator);
    Violation { pointer, help: help.map(str::to_owned), ..violation }
}
