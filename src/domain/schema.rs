//! The JSON Schema (2020-12) of the answers to a form, for whoever wants to check them before they are sent.
//!
//! It takes all that the form takes, and refuses what it refuses as far as JSON Schema can say it.

use std::collections::HashMap;

use super::condition::{Condition, Erring, Named};
use super::form::Version;
use super::json::{Object, Value};
use super::question::json::{all_of, any_of, negated, nothing, object};
use super::question::{Kind, Question};
use super::settings::UnknownAnswers;

impl Version {
    /// The schema of a submission's `answers`, for the form called `title`.
    pub fn schema(&self, title: &str, unknown_answers: UnknownAnswers) -> Value {
        let mut writing = Writing::default();
        let mut page = None;
        for question in &self.questions {
            if matches!(question.kind, Kind::Page(_)) {
                page = question.show_if.as_ref();
            }
            if let Some(id) = &question.id {
                writing.question(id, question, page.into_iter().chain(&question.show_if).collect());
            }
        }
        let Writing { properties, required, rules, .. } = writing;
        let some = |list: Vec<Value>| (!list.is_empty()).then_some(Value::Array(list));
        object([
            ("$schema", Some("https://json-schema.org/draft/2020-12/schema".into())),
            ("title", Some(title.into())),
            ("type", Some("object".into())),
            ("properties", Some(Value::Object(properties))),
            ("required", some(required)),
            ("additionalProperties", Some((unknown_answers == UnknownAnswers::Drop).into())),
            ("allOf", some(rules)),
            ("$defs", Some(object([("empty", Some(nothing()))]))),
        ])
    }
}

/// A schema as far as it is written.
#[derive(Default)]
struct Writing<'a> {
    /// The questions so far.
    named: HashMap<&'a str, Named<'a>>,
    properties: Object,
    required: Vec<Value>,
    /// What follows from conditions.
    rules: Vec<Value>,
}

impl<'a> Writing<'a> {
    /// Writes down a question that is asked where all of `shown` hold.
    fn question(&mut self, id: &'a str, question: &'a Question, shown: Vec<&Condition>) {
        let kind = &question.kind;
        let default = kind.rules().default_answer();
        let is_always_needed = question.required && shown.is_empty();
        if is_always_needed && default.is_none() {
            self.required.push(id.into());
        }
        self.properties.push((id.to_owned(), property(question, is_always_needed)));
        if kind.rules().takes_answer() {
            self.rule(&answered(id, kind, true), &self.all(&shown, Erring::Wide));
            let may_be_needed = question.required || question.required_if.is_some();
            if may_be_needed && !is_always_needed {
                let needed = question.required_if.iter().filter(|_| !question.required);
                let asked: Vec<_> = shown.iter().copied().chain(needed).collect();
                self.rule(&self.all(&asked, Erring::Narrow), &answered(id, kind, default.is_none()));
            }
        }
        let unsent = match default {
            Some(default) if shown.is_empty() => vec![Some(default)],
            Some(default) => vec![Some(default), None],
            None => vec![None],
        };
        self.named.insert(id, Named { kind, unsent });
    }

    fn all(&self, conditions: &[&Condition], erring: Erring) -> Value {
        all_of(conditions.iter().map(|condition| condition.schema(erring, &|id| self.named.get(id))))
    }

    /// Where `case` is so, `then` must be so too.
    fn rule(&mut self, case: &Value, then: &Value) {
        if *case != Value::Bool(false) && *then != Value::Bool(true) {
            self.rules.push(object([("if", Some(case.clone())), ("then", Some(then.clone()))]));
        }
    }
}

/// The schema of what may be sent for a question.
fn property(question: &Question, is_always_needed: bool) -> Value {
    let (fits, empty) = (question.kind.rules().schema(), question.kind.empty_schema());
    let value = if is_always_needed { all_of([fits, negated(empty)]) } else { any_of([fits, empty]) };
    let mut members = vec![("title".to_owned(), question.title.as_str().into())];
    members.extend(question.description.as_deref().map(|text| ("description".to_owned(), text.into())));
    match value {
        Value::Object(more) => members.extend(more),
        // A schema that takes nothing says no more.
        other => return other,
    }
    Value::Object(members)
}

/// The schema of objects in which the question has an answer that is not empty, and is there if it `must_be`.
fn answered(id: &str, kind: &Kind, must_be: bool) -> Value {
    object([
        ("properties", Some(Value::Object(vec![(id.to_owned(), negated(kind.empty_schema()))]))),
        ("required", must_be.then(|| [id].into_iter().collect())),
    ])
}
