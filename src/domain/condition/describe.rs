//! Descriptions of conditions in plain English: `score is 2 or less and colour is red or blue`.

use crate::domain::condition::{Clause, Condition, Operator, QuestionClause, Test};
use crate::domain::json::Value;

impl Condition {
    /// Describes the condition in plain English, with questions by their ids.
    pub fn describe(&self) -> String {
        describe(&self.root).0
    }
}

/// A phrase, and whether it needs brackets within a larger one.
type Phrase = (String, bool);

fn describe(clause: &Clause) -> Phrase {
    match clause {
        Clause::All(clauses) => join(clauses.iter().map(describe).collect(), " and "),
        Clause::Any(clauses) => join(clauses.iter().map(describe).collect(), " or "),
        Clause::Not(clause) => (format!("not ({})", describe(clause).0), false),
        Clause::Question(QuestionClause { question, tests, .. }) => {
            let tests = tests.iter().map(|test| (format!("{question} {}", test.describe()), false));
            join(tests.collect(), " and ")
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
    fn describe(&self) -> String {
        let (operand, value) = (&self.operand, self.operand.display_text());
        match self.operator {
            Operator::Eq => format!("is {value}"),
            Operator::Ne => format!("is not {value}"),
            Operator::Lt => format!("is {} {value}", words(operand, "before", "less than")),
            Operator::Lte => format!("is {value} or {}", words(operand, "before", "less")),
            Operator::Gt => format!("is {} {value}", words(operand, "after", "more than")),
            Operator::Gte => format!("is {value} or {}", words(operand, "after", "more")),
            Operator::In => format!("is {}", one_of(operand.as_array().unwrap_or_default())),
            Operator::Includes => format!("includes {value}"),
            Operator::Matches => format!("matches {}", operand.as_str().unwrap_or_default()),
            Operator::Answered if *operand == true.into() => "is answered".to_owned(),
            Operator::Answered => "is not answered".to_owned(),
        }
    }
}

/// Returns the words for a comparison with `value`: those `of_text` suit dates and times, too.
fn words(value: &Value, of_text: &'static str, of_number: &'static str) -> &'static str {
    if matches!(value, Value::String(_)) { of_text } else { of_number }
}

fn one_of(values: &[Value]) -> String {
    let phrases: Vec<_> = values.iter().map(Value::display_text).collect();
    match &phrases[..] {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        phrases => phrases.concat(),
    }
}
