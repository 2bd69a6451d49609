//! Conditions as data: whether a question is asked, or must be answered, for the answers given so far.
//!
//! This is the one evaluator. It knows nothing of forms: it is given answers by the ids of their questions. Evaluation
//! takes time linear in the condition and the answers it looks at; see [`Condition::searches`].

mod among;
mod compare;
mod decision;
mod left;
mod possible;
mod read;
mod schema;
mod wanted;
mod words;

use serde::{Serialize, Serializer};

use self::among::Among;
use super::json::Value;
use super::pattern::Pattern;

pub use compare::{Answer, Sense};
pub use decision::Decision;
pub use possible::{Asked, refuse_impossible};
pub use schema::{Erring, Named};
pub use wanted::Wanted;
pub(super) use wanted::search_too_often;

/// A condition, as its author wrote it and ready to be decided.
#[derive(Debug, Clone)]
pub struct Condition {
    written: Value,
    all: Clauses,
    searches: usize,
}

/// Finds the answer to the question of an id: `None` if there is none, or if the question was not asked.
pub type Lookup<'l, 'a> = &'l dyn Fn(&str) -> Option<Answer<'a>>;

/// What must hold together.
type Clauses = Vec<Clause>;

#[derive(Debug, Clone)]
enum Clause {
    All(Vec<Clauses>),
    Any(Vec<Clauses>),
    Not(Clauses),
    Question(About),
}

/// What is asked of the answer to one question.
#[derive(Debug, Clone)]
struct About {
    question: String,
    /// Where it stands, from the condition on: `/any/0/score`.
    at: String,
    /// A bare value or a list: its test has no member of its own.
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
    In(Among),
    Includes(Value),
    Matches(Pattern),
    Answered(bool),
}

impl Condition {
    /// Whether it is true for the answers that `lookup` gives.
    pub fn holds(&self, lookup: Lookup<'_, '_>) -> bool {
        self.decide(lookup, &|_| None).holds
    }

    /// The same, where what `lookup` gives for the id of a question may hang on a refused answer: `refused` gives the
    /// id of that one's question.
    pub fn decide<'a>(
        &self,
        lookup: Lookup<'_, '_>,
        refused: &dyn Fn(&str) -> Option<&'a str>,
    ) -> Decision<'a> {
        decide(&self.all, &|about| {
            let id = about.question.as_str();
            Decision { holds: about.holds(lookup(id)), refused: refused(id) }
        })
    }

    /// Makes its own tests ready to be decided for very many answers, in the sense that each question has; those of
    /// alternatives stay as they are.
    pub fn learn(&mut self, sense: &dyn Fn(&str) -> Sense) {
        for clause in &mut self.all {
            let Clause::Question(About { question, tests, .. }) = clause else { continue };
            for test in tests {
                match test {
                    Test::In(values) => values.learn(sense(question)),
                    Test::Matches(pattern) => pattern.learn(),
                    _ => {}
                }
            }
        }
    }

    /// How much of the answers' text it may look through: once for each `includes`, and [`PATTERN`](Self::PATTERN)
    /// times for each `matches`.
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Shows `see` each test that looks through an answer's text, with the id of the question it is asked of.
    pub fn each_search<'a>(&'a self, see: &mut dyn FnMut(&'a str, Search<'a>)) {
        each_search(&self.all, see);
    }
}

/// A test that looks through an answer's text.
#[derive(Debug, Clone, Copy)]
pub enum Search<'a> {
    /// Whether it has a part.
    Part,
    /// Whether it matches.
    Pattern(&'a Pattern),
}

fn each_search<'a>(clauses: &'a [Clause], see: &mut dyn FnMut(&'a str, Search<'a>)) {
    for clause in clauses {
        match clause {
            Clause::All(conditions) | Clause::Any(conditions) => {
                conditions.iter().for_each(|all| each_search(all, see));
            }
            Clause::Not(all) => each_search(all, see),
            Clause::Question(About { question, tests, .. }) => {
                tests.iter().filter_map(Test::search).for_each(|search| see(question, search));
            }
        }
    }
}

fn decide<'a>(all: &[Clause], question: &dyn Fn(&About) -> Decision<'a>) -> Decision<'a> {
    Decision::all(all.iter().map(|clause| match clause {
        Clause::All(conditions) => Decision::all(conditions.iter().map(|all| decide(all, question))),
        Clause::Any(conditions) => Decision::any(conditions.iter().map(|all| decide(all, question))),
        Clause::Not(all) => !decide(all, question),
        Clause::Question(about) => question(about),
    }))
}

impl About {
    fn holds(&self, answer: Option<Answer<'_>>) -> bool {
        self.tests.iter().all(|test| test.holds(answer))
    }
}

impl Test {
    /// The member under which it is written.
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

    fn search(&self) -> Option<Search<'_>> {
        match self {
            Self::Includes(_) => Some(Search::Part),
            Self::Matches(pattern) => Some(Search::Pattern(pattern)),
            _ => None,
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
            Self::In(values) => values.has(answer),
            Self::Includes(value) => answer.includes(value),
            Self::Matches(pattern) => {
                matches!(answer.value, Value::String(text) if pattern.matches(text))
            }
            Self::Answered(is_answered) => *is_answered,
        }
    }
}

/// As it was written.
impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}
