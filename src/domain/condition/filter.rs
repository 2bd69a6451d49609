//! Conditions built from the filter parameters of a list: question, operator and value as text.

use std::collections::BTreeMap;

use crate::domain::condition::lint::{inclusion_error, value_error};
use crate::domain::condition::{Condition, lint_condition};
use crate::domain::json::{Object, Value};
use crate::domain::question::{Question, Rules};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::{Limits, MAX_FILTER_TESTS, MAX_FILTER_VALUES};
use crate::domain::validation::violation::{Rule, Violation, join, shortened, unescape};

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
        let (members, unknown) = write(tests, questions);
        let mut errors: Vec<_> =
            unknown.iter().take(MAX_REPORTED).map(|id| unknown_question(id, questions)).collect();
        if members.is_empty() {
            return Err(errors);
        }
        let mut violations = Vec::new();
        let mut budget = Budget::new(&Limits { pattern_text: MAX_PATTERN_TEXT, ..Limits::default() });
        let (written, root) = (Value::Object(members), join("", NAME));
        let condition = Self::parse(&written, root.clone(), &mut budget, &mut violations);
        lint_condition(&condition, questions, &root, &mut violations);
        for error in violations.into_iter().map(|found| of_parameter(found, tests)) {
            if errors.len() < MAX_REPORTED && !errors.contains(&error) {
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(condition) } else { Err(errors) }
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

/// Converts the tests to the JSON of a condition, `{"q3": {"gte": 4}}`; also returns the unknown ids.
fn write<'a>(tests: &'a BTreeMap<FilterKey, String>, questions: &[Question]) -> (Object, Vec<&'a str>) {
    let (mut members, mut unknown) = (Object::new(), Vec::new());
    for (FilterKey { question: id, operator }, text) in tests {
        let mut answered = answered(questions);
        let Some((_, rules)) = answered.find(|(known, _)| *known == Some(id)) else {
            unknown.push(id.as_str());
            continue;
        };
        let value = (operator.clone(), operand(rules, operator, text));
        match members.last_mut() {
            Some((last, Value::Object(tests))) if last == id => tests.push(value),
            _ => members.push((id.clone(), Value::Object(vec![value]))),
        }
    }
    unknown.dedup();
    (members, unknown)
}

fn answered(questions: &[Question]) -> impl Iterator<Item = (Option<&String>, &dyn Rules)> {
    let rules = questions.iter().map(|question| (question.id.as_ref(), question.kind.rules()));
    rules.filter(|(_, rules)| rules.takes_answer())
}

fn unknown_question(id: &str, questions: &[Question]) -> Violation {
    let message = format!("`{}` is not a question of this form that takes an answer", shortened(id));
    let ids = answered(questions).filter_map(|(id, _)| id.map(String::as_str));
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

/// Converts a violation of the condition to one of the parameter in `tests` that it comes from.
fn of_parameter(violation: Violation, tests: &BTreeMap<FilterKey, String>) -> Violation {
    let path = violation.pointer.split_once(NAME).map_or("", |(_, path)| path);
    let mut steps = path.split('/').skip(1).map(unescape);
    let (question, operator) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
    let pointer =
        [NAME, &question, &operator].iter().fold(String::new(), |pointer, step| join(&pointer, step));
    let key = FilterKey { question, operator };
    let help = match violation.help {
        _ if tests.get(&key).is_some_and(|text| text.trim().is_empty()) => {
            Some("the operator `answered` with `false` asks for no answer")
        }
        // The help for a condition suggests JSON.
        Some(help) if help.starts_with("write `{") => Some("the operator `includes` tests one option"),
        _ => None,
    };
    Violation { pointer, help: help.map(str::to_owned), ..violation }
}
