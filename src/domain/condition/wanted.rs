//! A condition out of texts, as the filters of a list are sent: question, operator, value.

use std::collections::BTreeMap;

use super::possible::{INSTEAD, misfit, not_included};
use super::read::UNANSWERED;
use super::{Asked, Condition, refuse_impossible};
use crate::domain::fields::Fields;
use crate::domain::json::{Object, Value};
use crate::domain::question::{Question, Rules};

/// Which test of which question's answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    pub question: String,
    pub operator: String,
}

/// What the condition is called where it is read.
const NAME: &str = "filter";

impl Condition {
    /// The condition that holds where all the tests do. Their values are read by the types of the questions.
    ///
    /// # Errors
    /// What is wrong, and what would be right: a question that there is not, an operator, a value that does not fit or
    /// that no answer can have.
    pub fn wanted(tests: &BTreeMap<Wanted, String>, questions: &[Question]) -> Result<Self, String> {
        let written = Value::Object(vec![(NAME.to_owned(), write(tests, questions)?)]);
        let mut violations = Vec::new();
        let fields = Fields::open(&written, "", NAME, &mut violations);
        let condition = fields.and_then(|mut fields| Self::read(&mut fields, NAME));
        if let (Some(condition), true) = (&condition, violations.is_empty()) {
            let mut asked: Vec<_> = questions
                .iter()
                .map(|question| Asked { conditions: Vec::new(), ..question.asked() })
                .collect();
            asked.push(Asked { id: None, kind: None, conditions: vec![(NAME, condition)] });
            refuse_impossible(asked, &mut violations);
        }
        match (condition, violations.first()) {
            (Some(condition), None) => Ok(condition),
            (_, violation) => {
                Err(violation.map_or_else(String::new, |found| told(&found.pointer, &found.message)))
            }
        }
    }
}

/// The tests as a condition is written: `{"q3": {"gte": 4}}`.
fn write(tests: &BTreeMap<Wanted, String>, questions: &[Question]) -> Result<Value, String> {
    let mut members = Object::new();
    for (Wanted { question: id, operator }, text) in tests {
        let value = (operator.clone(), operand(rules(id, questions)?, operator, text));
        match members.last_mut() {
            Some((last, Value::Object(tests))) if last == id => tests.push(value),
            _ => members.push((id.clone(), Value::Object(vec![value]))),
        }
    }
    Ok(Value::Object(members))
}

fn rules<'a>(id: &str, questions: &'a [Question]) -> Result<&'a dyn Rules, String> {
    let answered = || questions.iter().filter(|question| question.kind.rules().takes_answer());
    let found = answered().find(|question| question.id.as_deref() == Some(id));
    found.map(|question| question.kind.rules()).ok_or_else(|| {
        let (id, ids) = (short(id), listed(answered().filter_map(|question| question.id.as_deref())));
        format!("`filter[{id}]` names no question of this form that takes an answer; there are {ids}")
    })
}

/// What `text` stands for behind `operator`.
fn operand(rules: &dyn Rules, operator: &str, text: &str) -> Value {
    match (operator, text) {
        ("answered", "true") => true.into(),
        ("answered", "false") => false.into(),
        ("in", _) => text.split(',').map(|item| chosen(rules, rules.entered(item), item, misfit)).collect(),
        ("eq" | "ne", _) => chosen(rules, rules.entered(text), text, misfit),
        ("includes", _) => chosen(rules, text.into(), text, not_included),
        ("answered" | "matches", _) => text.into(),
        _ => rules.entered(text),
    }
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
fn told(pointer: &str, message: &str) -> String {
    let path = pointer.split_once(NAME).map_or("", |(_, path)| path);
    let mut names = path.split('/').skip(1).take(2).map(|name| format!("[{}]", short(name)));
    let (question, operator) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    // What would be right is said as conditions write it.
    let message = match message.split_once(INSTEAD) {
        Some((why, _)) => format!("{why}{INSTEAD}`filter{question}[includes]`"),
        None => message.replace(UNANSWERED, &format!("`filter{question}[answered]=false`")),
    };
    format!("`filter{question}{operator}`: {message}")
}

/// Enough of `text` to know it again.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A few of the ids.
fn listed<'a>(mut ids: impl Iterator<Item = &'a str>) -> String {
    const FEW: usize = 20;
    let few: Vec<_> = ids.by_ref().take(FEW).collect();
    let more = if ids.next().is_some() { ", …" } else { "" };
    few.join(", ") + more
}
