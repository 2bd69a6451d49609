//! Conditions as data: whether a question is asked, or must be answered, given the answers so far.
//!
//! The only evaluator of conditions. It is independent of forms: answers are looked up by question id. Evaluation takes
//! time linear in the size of the condition and of the answers it tests.

mod compare;
mod decision;
mod describe;
mod filter;
mod lint;
mod read;

use serde::{Serialize, Serializer};

use crate::domain::json::Value;
use crate::domain::pattern::Pattern;

pub use compare::{Answer, DAY_NANOS, ValueType};
pub use decision::Decision;
pub use filter::FilterKey;
pub use lint::{LintInput, lint_condition, lint_conditions};

/// A condition, as written and parsed.
#[derive(Debug, Clone)]
pub struct Condition {
    written: Value,
    all: Clauses,
    /// Maximum characters of answers that a `matches` tests.
    matched: usize,
}

/// Returns the answer to the question with an id; `None` if it has no answer or was not asked.
pub type Lookup<'l, 'a> = &'l dyn Fn(&str) -> Option<Answer<'a>>;

type Clauses = Vec<Clause>;

#[derive(Debug, Clone)]
enum Clause {
    All(Vec<Clauses>),
    Any(Vec<Clauses>),
    Not(Clauses),
    Question(QuestionClause),
}

#[derive(Debug, Clone)]
struct QuestionClause {
    question: String,
    /// JSON pointer within the condition: `/any/0/score`.
    at: String,
    /// Whether it is written as a bare value or list, without an operator.
    is_bare: bool,
    tests: Vec<Test>,
}

#[derive(Debug, Clone)]
enum Test {
    Eq(Value),
    Ne(Value),
    Lt(Value),
    Lte(Value),
    Gt(Value),
    Gte(Value),
    In(Vec<Value>),
    Includes(Value),
    Matches(Pattern),
    Answered(bool),
}

impl Condition {
    /// Evaluates the condition with the answers of `lookup`.
    pub fn holds(&self, lookup: Lookup<'_, '_>) -> bool {
        self.decide(lookup, &|_| None).holds
    }

    /// Evaluates the condition if some answers depend on invalid ones: for a question id, `refused` returns the id of the
    /// question whose invalid answer it depends on.
    pub fn decide<'a>(
        &self,
        lookup: Lookup<'_, '_>,
        refused: &dyn Fn(&str) -> Option<&'a str>,
    ) -> Decision<'a> {
        decide(&self.all, &|clause| {
            let id = clause.question.as_str();
            Decision { holds: clause.holds(lookup(id)), refused: refused(id) }
        })
    }

    /// Prepares the patterns of its top-level tests for very many answers.
    pub fn prepare(&mut self) {
        let tests = self.all.iter_mut().filter_map(|clause| match clause {
            Clause::Question(clause) => Some(&mut clause.tests),
            _ => None,
        });
        for test in tests.flatten() {
            if let Test::Matches(pattern) = test {
                pattern.prepare();
            }
        }
    }

    /// Calls `visit` for each text search: with `None` for an `includes`, with its pattern for a `matches`.
    pub fn for_each_text_search<'a>(&'a self, visit: &mut dyn FnMut(Option<&'a Pattern>)) {
        for_each_text_search(&self.all, visit);
    }
}

fn for_each_text_search<'a>(clauses: &'a [Clause], visit: &mut dyn FnMut(Option<&'a Pattern>)) {
    for clause in clauses {
        match clause {
            Clause::All(conditions) | Clause::Any(conditions) => {
                conditions.iter().for_each(|all| for_each_text_search(all, visit));
            }
            Clause::Not(all) => for_each_text_search(all, visit),
            Clause::Question(QuestionClause { tests, .. }) => tests.iter().for_each(|test| match test {
                Test::Includes(_) => visit(None),
                Test::Matches(pattern) => visit(Some(pattern)),
                _ => {}
            }),
        }
    }
}

fn decide<'a>(all: &[Clause], question: &dyn Fn(&QuestionClause) -> Decision<'a>) -> Decision<'a> {
    Decision::all(all.iter().map(|clause| match clause {
        Clause::All(conditions) => Decision::all(conditions.iter().map(|all| decide(all, question))),
        Clause::Any(conditions) => Decision::any(conditions.iter().map(|all| decide(all, question))),
        Clause::Not(all) => !decide(all, question),
        Clause::Question(clause) => question(clause),
    }))
}

impl QuestionClause {
    fn holds(&self, answer: Option<Answer<'_>>) -> bool {
        self.tests.iter().all(|test| test.holds(answer))
    }
}

impl Test {
    fn name(&self) -> &'static str {
        match self {
            Self::Eq(_) => "eq",
            Self::Ne(_) => "ne",
            Self::Lt(_) => "lt",
            Self::Lte(_) => "lte",
            Self::Gt(_) => "gt",
            Self::Gte(_) => "gte",
            Self::In(_) => "in",
            Self::Includes(_) => "includes",
            Self::Matches(_) => "matches",
            Self::Answered(_) => "answered",
        }
    }

    fn holds(&self, answer: Option<Answer<'_>>) -> bool {
        let Some(answer) = answer else { return matches!(self, Self::Ne(_) | Self::Answered(false)) };
        match self {
            Self::Eq(value) => answer.equals(value),
            Self::Ne(value) => !answer.equals(value),
            Self::Lt(value) => answer.order(value).is_some_and(|order| order.is_lt()),
            Self::Lte(value) => answer.order(value).is_some_and(|order| order.is_le()),
            Self::Gt(value) => answer.order(value).is_some_and(|order| order.is_gt()),
            Self::Gte(value) => answer.order(value).is_some_and(|order| order.is_ge()),
            Self::In(values) => values.iter().any(|value| answer.equals(value)),
            Self::Includes(value) => answer.includes(value),
            Self::Matches(pattern) => answer.matchable().is_some_and(|text| pattern.matches(text)),
            Self::Answered(is_answered) => *is_answered,
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}
