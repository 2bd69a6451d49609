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

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

use crate::domain::json::Value;
use crate::domain::open_enum::named_enum;
use crate::domain::pattern::Pattern;

pub use compare::{Answer, DAY_NANOS, ValueType};
pub use decision::Decision;
pub use describe::{Ids, Names};
pub use filter::FilterKey;
pub use lint::{lint_condition, lint_conditions};

/// A condition, as written and parsed.
#[derive(Debug, Clone)]
pub struct Condition {
    written: Value,
    root: Clause,
    /// Maximum characters of answers that a `matches` tests.
    matched: usize,
}

/// Returns the answer to the question with an id; `None` if it has no answer or was not asked.
pub type Lookup<'l, 'a> = &'l dyn Fn(&str) -> Option<Answer<'a>>;

#[derive(Debug, Clone)]
enum Clause {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Question(QuestionClause),
}

#[derive(Debug, Clone)]
struct QuestionClause {
    question: String,
    /// JSON pointer within the condition: `/any/0/score`.
    at: String,
    tests: Vec<Test>,
}

#[derive(Debug, Clone)]
struct Test {
    /// JSON pointer within the condition: `/any/0/score/gte`.
    at: String,
    operator: Operator,
    /// The value that answers are compared with; for `in`, a list of values.
    operand: Value,
    /// The operand of `matches`.
    pattern: Option<Pattern>,
}

named_enum! {
    Operator {
        Eq = "eq",
        Ne = "ne",
        Lt = "lt",
        Lte = "lte",
        Gt = "gt",
        Gte = "gte",
        In = "in",
        Includes = "includes",
        Matches = "matches",
        Answered = "answered",
    }
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
        self.root.decide(&|QuestionClause { question, tests, .. }| {
            let answer = lookup(question);
            Decision { holds: tests.iter().all(|test| test.holds(answer)), refused: refused(question) }
        })
    }

    /// Prepares the patterns of its top-level tests for very many answers.
    pub fn prepare(&mut self) {
        let Clause::All(clauses) = &mut self.root else { return };
        for clause in clauses {
            if let Clause::Question(QuestionClause { tests, .. }) = clause {
                tests.iter_mut().filter_map(|test| test.pattern.as_mut()).for_each(Pattern::prepare);
            }
        }
    }

    /// Returns an item for each text search: `None` for an `includes`, the pattern for a `matches`.
    pub fn text_searches(&self) -> impl Iterator<Item = Option<&Pattern>> {
        let tests = self.root.questions().into_iter().flat_map(|clause| &clause.tests);
        let searches = tests.filter(|test| matches!(test.operator, Operator::Includes | Operator::Matches));
        searches.map(|test| test.pattern.as_ref())
    }
}

impl Clause {
    fn decide<'a>(&self, question: &dyn Fn(&QuestionClause) -> Decision<'a>) -> Decision<'a> {
        match self {
            Self::All(clauses) => Decision::all(clauses.iter().map(|clause| clause.decide(question))),
            Self::Any(clauses) => Decision::any(clauses.iter().map(|clause| clause.decide(question))),
            Self::Not(clause) => !clause.decide(question),
            Self::Question(clause) => question(clause),
        }
    }

    /// Returns the tested questions, at any depth.
    fn questions(&self) -> Vec<&QuestionClause> {
        match self {
            Self::All(clauses) | Self::Any(clauses) => clauses.iter().flat_map(Self::questions).collect(),
            Self::Not(clause) => clause.questions(),
            Self::Question(clause) => vec![clause],
        }
    }
}

impl Test {
    fn holds(&self, answer: Option<Answer<'_>>) -> bool {
        let (operator, operand) = (self.operator, &self.operand);
        let Some(answer) = answer else {
            return operator == Operator::Ne || (operator == Operator::Answered && *operand == false.into());
        };
        let order = || answer.order(operand);
        match operator {
            Operator::Eq => answer.equals(operand),
            Operator::Ne => !answer.equals(operand),
            Operator::Lt => order().is_some_and(Ordering::is_lt),
            Operator::Lte => order().is_some_and(Ordering::is_le),
            Operator::Gt => order().is_some_and(Ordering::is_gt),
            Operator::Gte => order().is_some_and(Ordering::is_ge),
            Operator::In => operand.as_array().unwrap_or_default().iter().any(|value| answer.equals(value)),
            Operator::Includes => answer.includes(operand),
            Operator::Matches => self
                .pattern
                .as_ref()
                .zip(answer.matchable())
                .is_some_and(|(pattern, text)| pattern.matches(text)),
            Operator::Answered => *operand == true.into(),
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}
