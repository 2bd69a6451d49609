//! Descriptions of conditions in plain English: `score is 2 or less and colour is red or blue`.

use crate::domain::condition::{Clause, Clauses, Condition, QuestionClause, Test};
use crate::domain::json::Value;

impl Condition {
    /// Describes the condition in plain English, with questions by their ids.
    pub fn describe(&self) -> String {
        all(&self.all).0
    }
}

/// A phrase, and whether it needs brackets within a larger one.
type Phrase = (String, bool);

fn all(clauses: &Clauses) -> Phrase {
    join(clauses.iter().map(clause).collect(), " and ")
}

fn clause(clause: &Clause) -> Phrase {
    match clause {
        Clause::All(conditions) => join(conditions.iter().map(all).collect(), " and "),
        Clause::Any(conditions) => join(conditions.iter().map(all).collect(), " or "),
        Clause::Not(conditions) => (format!("not ({})", all(conditions).0), false),
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
        match self {
            Self::Eq(value) => format!("is {}", value.display_text()),
            Self::Ne(value) => format!("is not {}", value.display_text()),
            Self::Lt(value) => format!("is {} {}", words(value, "before", "less than"), value.display_text()),
            Self::Lte(value) => format!("is {} or {}", value.display_text(), words(value, "before", "less")),
            Self::Gt(value) => format!("is {} {}", words(value, "after", "more than"), value.display_text()),
            Self::Gte(value) => format!("is {} or {}", value.display_text(), words(value, "after", "more")),
            Self::In(values) => format!("is {}", one_of(values)),
            Self::Includes(value) => format!("includes {}", value.display_text()),
            Self::Matches(pattern) => format!("matches {}", pattern.text),
            Self::Answered(true) => "is answered".to_owned(),
            Self::Answered(false) => "is not answered".to_owned(),
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
