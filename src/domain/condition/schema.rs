//! A condition as JSON Schema: the objects of answers that it holds for, as far as that language can say it.
//!
//! It cannot compare texts by order, moments in time, or members in order, and has patterns of another syntax. There the
//! schema errs on the side that it is told to.

use super::{About, Answer, Clause, Condition, Sense, Test};
use crate::domain::json::Value;
use crate::domain::question::Kind;
use crate::domain::question::json::{all_of, any_of, negated, object};

/// On which side a schema errs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erring {
    /// It takes all answers for which the condition holds, and perhaps others.
    Wide,
    /// It takes only such answers, and perhaps not all.
    Narrow,
}

impl Erring {
    fn opposite(self) -> Self {
        match self {
            Self::Wide => Self::Narrow,
            Self::Narrow => Self::Wide,
        }
    }

    /// What stands for what cannot be said.
    fn unsaid(self) -> Value {
        (self == Self::Wide).into()
    }
}

/// A question that conditions name.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    pub kind: &'a Kind,
    /// The answers it may have where none was sent: which one may depend on other answers.
    pub unsent: Vec<Option<&'a Value>>,
}

/// Finds a question by its id.
type Find<'f, 'a> = &'f dyn Fn(&str) -> Option<&'f Named<'a>>;

impl Condition {
    /// The schema of the objects of answers for which it holds.
    pub fn schema(&self, erring: Erring, find: Find<'_, '_>) -> Value {
        clauses(&self.all, erring, find)
    }
}

fn clauses(all: &[Clause], erring: Erring, find: Find<'_, '_>) -> Value {
    all_of(all.iter().map(|clause| match clause {
        Clause::All(conditions) => all_of(conditions.iter().map(|all| clauses(all, erring, find))),
        Clause::Any(conditions) => any_of(conditions.iter().map(|all| clauses(all, erring, find))),
        Clause::Not(all) => negated(clauses(all, erring.opposite(), find)),
        Clause::Question(about) => {
            find(&about.question).map_or_else(|| erring.unsaid(), |named| answer(about, named, erring))
        }
    }))
}

fn answer(about: &About, named: &Named<'_>, erring: Erring) -> Value {
    let sense = named.kind.rules().sense();
    let holds = |value: &Option<&Value>| about.holds(value.map(|value| Answer { value, sense }));
    let may_be_unsent = match erring {
        Erring::Wide => named.unsent.iter().any(holds),
        Erring::Narrow => named.unsent.iter().all(holds),
    };
    let fits = all_of(about.tests.iter().map(|test| value(test, named.kind, erring)));
    let id = about.question.as_str();
    let fits = match fits {
        Value::Bool(true) => true.into(),
        fits => object([("properties", Some(Value::Object(vec![(id.to_owned(), fits)])))]),
    };
    if may_be_unsent {
        fits
    } else {
        all_of([object([("required", Some([id].into_iter().collect()))]), fits])
    }
}

/// The schema of the values that were sent for which `test` holds; empty ones are no answer.
fn value(test: &Test, kind: &Kind, erring: Erring) -> Value {
    let bound = |name, value: &Value| match value {
        Value::Number(_) => object([("type", Some("number".into())), (name, Some(value.clone()))]),
        _ => erring.unsaid(),
    };
    match test {
        Test::Eq(value) => equal(value, kind, erring),
        Test::Ne(value) => negated(equal(value, kind, erring.opposite())),
        Test::In(values) => any_of(values.values().iter().map(|value| equal(value, kind, erring))),
        Test::Lt(value) => bound("exclusiveMaximum", value),
        Test::Lte(value) => bound("maximum", value),
        Test::Gt(value) => bound("exclusiveMinimum", value),
        Test::Gte(value) => bound("minimum", value),
        Test::Includes(value) => includes(value),
        Test::Matches(_) => erring.unsaid(),
        Test::Answered(true) => negated(kind.empty_schema()),
        Test::Answered(false) => kind.empty_schema(),
    }
}

fn equal(value: &Value, kind: &Kind, erring: Erring) -> Value {
    match (kind.rules().sense(), value) {
        (Sense::Text | Sense::Date | Sense::Typed, value) if has_order_of_members(value) => erring.unsaid(),
        (Sense::Text | Sense::Date | Sense::Typed, _) => object([("const", Some(value.clone()))]),
        (Sense::Time, Value::String(time)) => object([("enum", Some(spellings(time).into_iter().collect()))]),
        (Sense::Time | Sense::Moment, _) => erring.unsaid(),
    }
}

/// Whether the same members in another order would be another value.
fn has_order_of_members(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.len() > 1 || members.iter().any(|(_, value)| has_order_of_members(value))
        }
        Value::Array(items) => items.iter().any(has_order_of_members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// How one time of day may be written.
fn spellings(time: &str) -> Vec<Value> {
    let short =
        if time.len() == 5 { Some(time) } else { time.strip_suffix(":00").filter(|short| short.len() == 5) };
    match short {
        Some(short) => vec![short.into(), Value::String(format!("{short}:00"))],
        None => vec![time.into()],
    }
}

/// Lists that have the value, and texts that have the text.
fn includes(value: &Value) -> Value {
    let list = object([
        ("type", Some("array".into())),
        ("contains", Some(object([("const", Some(value.clone()))]))),
    ]);
    match value {
        Value::String(text) => {
            let pattern = Some(Value::String(escaped(text)));
            any_of([list, object([("type", Some("string".into())), ("pattern", pattern)])])
        }
        _ => list,
    }
}

/// A regular expression, also in the syntax of JSON Schema, for `text` itself.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"^$\.*+?()[]{}|".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
