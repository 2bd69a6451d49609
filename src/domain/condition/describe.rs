//! Descriptions of conditions in plain words: `score is 2 or less and colour is red or blue`.

use crate::domain::condition::{Clause, Condition, Operator, QuestionClause, Test};
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};

/// The names of questions and values in a description of a condition.
pub trait Names {
    /// Returns the name of the question `id`; by default the id.
    fn question(&self, id: &str) -> String {
        id.to_owned()
    }

    /// Returns the name of a `value` of the question `id`; by default the value.
    fn value(&self, _id: &str, value: &Value) -> String {
        value.display_text()
    }
}

/// The ids and values as developers write them.
#[derive(Debug, Clone, Copy)]
pub struct Ids;

impl Names for Ids {}

impl Condition {
    /// Describes the condition in the words of `texts`, with `names` for questions and values.
    pub fn describe(&self, texts: &Texts, names: &dyn Names) -> String {
        describe(&self.root, texts, names).0
    }
}

/// A phrase, and whether it needs brackets within a larger one.
type Phrase = (String, bool);

fn describe(clause: &Clause, texts: &Texts, names: &dyn Names) -> Phrase {
    let all = |clauses: &[Clause]| clauses.iter().map(|clause| describe(clause, texts, names)).collect();
    match clause {
        Clause::All(clauses) => join(all(clauses), texts.and),
        Clause::Any(clauses) => join(all(clauses), texts.or),
        Clause::Not(clause) => {
            let (condition, _) = describe(clause, texts, names);
            (fill(texts.not, &[("condition", &condition)]), false)
        }
        Clause::Question(QuestionClause { question, tests, .. }) => {
            let tests = tests.iter().map(|test| (test.describe(question, texts, names), false));
            join(tests.collect(), texts.and)
        }
    }
}

fn join(mut phrases: Vec<Phrase>, word: &str) -> Phrase {
    if phrases.len() == 1 {
        return phrases.remove(0);
    }
    let bracketed =
        phrases.into_iter().map(|(text, is_several)| if is_several { format!("({text})") } else { text });
    (bracketed.collect::<Vec<_>>().join(word), true)
}

impl Test {
    fn describe(&self, id: &str, texts: &Texts, names: &dyn Names) -> String {
        let values: Vec<_> = match (self.operator, &self.operand) {
            (Operator::In, Value::Array(values)) => {
                values.iter().map(|value| names.value(id, value)).collect()
            }
            (Operator::Matches, pattern) => vec![pattern.as_str().unwrap_or_default().to_owned()],
            (_, value) => vec![names.value(id, value)],
        };
        fill(self.template(texts), &[("question", &names.question(id)), ("value", &one_of(&values, texts))])
    }

    /// Returns the template for the operator; words for the order of texts suit dates and times, too.
    fn template(&self, texts: &Texts) -> &'static str {
        let ordered =
            |of_text, of_number| if matches!(self.operand, Value::String(_)) { of_text } else { of_number };
        match self.operator {
            Operator::Eq | Operator::In => texts.if_eq,
            Operator::Ne => texts.if_ne,
            Operator::Lt => ordered(texts.if_before, texts.if_lt),
            Operator::Lte => ordered(texts.if_until, texts.if_lte),
            Operator::Gt => ordered(texts.if_after, texts.if_gt),
            Operator::Gte => ordered(texts.if_since, texts.if_gte),
            Operator::Includes => texts.if_includes,
            Operator::Matches => texts.if_matches,
            Operator::Answered if self.operand == true.into() => texts.if_answered,
            Operator::Answered => texts.if_unanswered,
        }
    }
}

fn one_of(values: &[String], texts: &Texts) -> String {
    match values {
        [others @ .., last] if !others.is_empty() => others.join(texts.comma) + texts.or + last,
        values => values.concat(),
    }
}
