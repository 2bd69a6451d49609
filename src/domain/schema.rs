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
        writing.defs.push(("empty".to_owned(), nothing()));
        for (place, question) in self.questions.iter().enumerate() {
            if question.kind.begins_page() {
                writing.page(place, question);
            }
            if let Some(id) = &question.id {
                writing.question(id, question);
            }
        }
        let Writing { defs, properties, required, rules, .. } = writing;
        let some = |list: Vec<Value>| (!list.is_empty()).then_some(Value::Array(list));
        object([
            ("$schema", Some("https://json-schema.org/draft/2020-12/schema".into())),
            ("title", Some(title.into())),
            ("type", Some("object".into())),
            ("properties", Some(Value::Object(properties))),
            ("required", some(required)),
            ("additionalProperties", Some((unknown_answers == UnknownAnswers::Drop).into())),
            ("allOf", some(rules)),
            ("$defs", Some(Value::Object(defs))),
        ])
    }
}

/// A schema as far as it is written.
#[derive(Default)]
struct Writing<'a> {
    /// The questions so far.
    named: HashMap<&'a str, Named<'a>>,
    /// What is said once and meant in many places.
    defs: Object,
    /// Where the questions of this page are asked, if not everywhere.
    page: Option<Shown>,
    properties: Object,
    required: Vec<Value>,
    /// What follows from conditions.
    rules: Vec<Value>,
}

/// Where something is asked: a schema that errs towards more, and one that errs towards less.
#[derive(Clone)]
struct Shown {
    wide: Value,
    narrow: Value,
}

impl<'a> Writing<'a> {
    /// Begins the page at `place`. Its condition is written down once: a form may have many questions behind it.
    fn page(&mut self, place: usize, page: &Question) {
        self.page = page.show_if.as_ref().map(|condition| Shown {
            wide: self.define(format!("page_{place}_wide"), condition, Erring::Wide),
            narrow: self.define(format!("page_{place}_narrow"), condition, Erring::Narrow),
        });
    }

    /// A reference to the schema of `condition`, which gets the `name`.
    fn define(&mut self, name: String, condition: &Condition, erring: Erring) -> Value {
        let reference = object([("$ref", Some(format!("#/$defs/{name}").as_str().into()))]);
        let schema = self.schema(condition, erring);
        self.defs.push((name, schema));
        reference
    }

    fn schema(&self, condition: &Condition, erring: Erring) -> Value {
        condition.schema(erring, &|id| self.named.get(id))
    }

    /// Where a question is asked that has the condition `show_if`.
    fn shown(&self, show_if: Option<&Condition>, erring: Erring) -> Value {
        let page = self.page.as_ref().map(|page| match erring {
            Erring::Wide => page.wide.clone(),
            Erring::Narrow => page.narrow.clone(),
        });
        all_of(page.into_iter().chain(show_if.map(|condition| self.schema(condition, erring))))
    }

    /// Writes down the rules of a question.
    fn question(&mut self, id: &'a str, question: &'a Question) {
        let kind = &question.kind;
        let default = kind.rules().default_answer();
        let show_if = question.show_if.as_ref();
        let is_always_asked = self.page.is_none() && show_if.is_none();
        let is_always_needed = question.required && is_always_asked;
        if is_always_needed && default.is_none() {
            self.required.push(id.into());
        }
        self.properties.push((id.to_owned(), property(question, is_always_needed)));
        if kind.rules().takes_answer() {
            self.rule(&answered(id, kind, true), &self.shown(show_if, Erring::Wide));
            let may_be_needed = question.required || question.required_if.is_some();
            if may_be_needed && !is_always_needed {
                let needed = question.required_if.iter().filter(|_| !question.required);
                let needed = needed.map(|condition| self.schema(condition, Erring::Narrow));
                let case = all_of([self.shown(show_if, Erring::Narrow)].into_iter().chain(needed));
                self.rule(&case, &answered(id, kind, default.is_none()));
            }
        }
        let unsent = match default {
            Some(default) if is_always_asked => vec![Some(default)],
            Some(default) => vec![Some(default), None],
            None => vec![None],
        };
        self.named.insert(id, Named { kind, unsent });
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
