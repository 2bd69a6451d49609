//! A condition out of texts, as the filters of a list are sent: question, operator, value.

use std::collections::BTreeMap;

use super::lint::{INSTEAD, misfit, not_included};
use super::read::UNANSWERED;
use super::{Asked, Condition, refuse_impossible};
use crate::domain::budget::Budget;
use crate::domain::fields::Fields;
use crate::domain::json::{Object, Value};
use crate::domain::limits::{Limits, MAX_FILTER_TESTS, MAX_FILTER_VALUES};
use crate::domain::question::{Question, Rules};
use crate::domain::violation::{Violation, shortened};

/// The question and the operator of one test in a filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterKey {
    pub question: String,
    pub operator: String,
}

/// Names and problems in one message.
const FEW: usize = 20;

/// What the condition is called where it is read.
const NAME: &str = "filter";

/// Characters of all patterns in a filter: compiling them takes up to 50 ms.
const MAX_PATTERN_TEXT: usize = 1_000;

impl Condition {
    /// The condition that holds where all `tests` do. Their values are read by the types of `questions`.
    ///
    /// # Errors
    /// Everything that is wrong, and what would be right: too many tests or values, an unknown question or operator, a
    /// value that does not fit or that no answer can have.
    pub fn from_filter(tests: &BTreeMap<FilterKey, String>, questions: &[Question]) -> Result<Self, String> {
        refuse_many(tests)?;
        let (members, unknown) = write(tests, questions);
        let mut faults: Vec<_> =
            (!unknown.is_empty()).then(|| unknown_questions(&unknown, questions)).into_iter().collect();
        if members.is_empty() {
            return Err(faults.concat());
        }
        let mut violations = Vec::new();
        let condition = read(members, questions, &mut violations);
        for fault in violations.iter().map(|found| render_fault(&found.pointer, &found.message)) {
            if faults.len() < FEW && !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        condition.filter(|_| faults.is_empty()).ok_or_else(|| faults.join("; "))
    }
}

fn refuse_many(tests: &BTreeMap<FilterKey, String>) -> Result<(), String> {
    let count = |(key, text): (&FilterKey, &String)| match key.operator.as_str() {
        "in" => text.split(',').count(),
        _ => 1,
    };
    let values: usize = tests.iter().map(count).sum();
    for (found, allowed, of) in
        [(tests.len(), MAX_FILTER_TESTS, "tests"), (values, MAX_FILTER_VALUES, "values")]
    {
        if found > allowed {
            return Err(format!("the filter has {found} {of}, {allowed} are allowed"));
        }
    }
    Ok(())
}

/// The condition that is written as `members`.
fn read(members: Object, questions: &[Question], violations: &mut Vec<Violation>) -> Option<Condition> {
    let written = Value::Object(vec![(NAME.to_owned(), Value::Object(members))]);
    let mut budget = Budget::new(&Limits { pattern_text: MAX_PATTERN_TEXT, ..Limits::default() });
    let condition = Condition::read(&mut Fields::open(&written, "", NAME, violations)?, NAME, &mut budget)?;
    let unconditional = |question| Asked { conditions: Vec::new(), ..Question::asked(question) };
    let filter = Asked { id: None, kind: None, conditions: vec![(NAME, &condition)] };
    refuse_impossible(questions.iter().map(unconditional).chain([filter]), violations);
    Some(condition)
}

/// The tests as a condition is written, `{"q3": {"gte": 4}}`, and the ids that are of no question.
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

/// The questions that take an answer.
fn answered(questions: &[Question]) -> impl Iterator<Item = (Option<&String>, &dyn Rules)> {
    let rules = questions.iter().map(|question| (question.id.as_ref(), question.kind.rules()));
    rules.filter(|(_, rules)| rules.takes_answer())
}

/// The message about `unknown` ids.
fn unknown_questions(unknown: &[&str], questions: &[Question]) -> String {
    let filters: Vec<_> = unknown.iter().take(FEW).map(|id| format!("`filter[{}]`", shortened(id))).collect();
    let verb = if unknown.len() == 1 { "names" } else { "name" };
    let ids = listed(answered(questions).filter_map(|(id, _)| id.map(String::as_str)));
    format!("{} {verb} no question of this form that takes an answer; there are {ids}", filters.join(", "))
}

/// What `text` stands for behind `operator`.
fn operand(rules: &dyn Rules, operator: &str, text: &str) -> Value {
    match (operator, text) {
        ("answered", "true") => true.into(),
        ("answered", "false") => false.into(),
        ("in", _) => text.split(',').map(|item| equal(rules, item)).collect(),
        ("eq" | "ne", _) => equal(rules, text),
        ("includes", _) => chosen(rules, text.into(), text, not_included),
        ("answered" | "matches", _) => text.into(),
        _ => rules.entered(text),
    }
}

/// What an answer is to equal.
fn equal(rules: &dyn Rules, text: &str) -> Value {
    chosen(rules, rules.entered(text), text, misfit)
}

/// `value`, or `text` as other words than the options, where those are taken and `value` has a fault.
fn chosen(
    rules: &dyn Rules,
    value: Value,
    text: &str,
    fault: impl Fn(&dyn Rules, &Value) -> Option<String>,
) -> Value {
    let other = || Value::Object(vec![("other".to_owned(), text.into())]);
    let is_other = rules.takes_other() && fault(rules, &value).is_some();
    is_other.then(other).filter(|other| fault(rules, other).is_none()).unwrap_or(value)
}

/// `message`, about what `pointer` names in the condition.
fn render_fault(pointer: &str, message: &str) -> String {
    let path = pointer.split_once(NAME).map_or("", |(_, path)| path);
    let mut names = path.split('/').skip(1).take(2).map(|name| format!("[{}]", shortened(name)));
    let (question, operator) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    // What would be right is said as conditions write it.
    let message = match message.split_once(INSTEAD) {
        Some((why, _)) => format!("{why}{INSTEAD}`filter{question}[includes]`"),
        None => message.replace(UNANSWERED, &format!("`filter{question}[answered]=false`")),
    };
    format!("`filter{question}{operator}`: {message}")
}

/// A few of the ids.
fn listed<'a>(mut ids: impl Iterator<Item = &'a str>) -> String {
    let few: Vec<_> = ids.by_ref().take(FEW).collect();
    let more = if ids.next().is_some() { ", …" } else { "" };
    few.join(", ") + more
}
