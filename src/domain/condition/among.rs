//! The values of an `in`: gone through for a few answers, looked up for very many.

use std::collections::HashSet;

use time::OffsetDateTime;

use super::compare::{moment, with_seconds};
use super::{Answer, Sense};
use crate::domain::json::{Decimal, Value};

/// Values of which an answer must be one.
#[derive(Debug, Clone)]
pub(super) struct Among {
    values: Vec<Value>,
    /// What the values stand for in a sense, once it is known that many answers are looked at.
    known: Option<(Sense, HashSet<Known>)>,
}

/// What a value stands for: of two that are equal, the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Known {
    Number(Decimal),
    Text(String),
    Time([u8; 8]),
    Moment(OffsetDateTime),
    Other(Value),
}

impl Among {
    pub(super) fn new(values: Vec<Value>) -> Self {
        Self { values, known: None }
    }

    /// The values, as they were written.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Makes it as quick to decide as if it had one value, for answers in this sense.
    pub(super) fn learn(&mut self, sense: Sense) {
        let known = self.values.iter().flat_map(|value| {
            let meant = sense.meant(value).map(|meant| Known::new(&meant, sense));
            [Some(Known::new(value, sense)), meant]
        });
        self.known = Some((sense, known.flatten().collect()));
    }

    /// Whether `answer` is one of them.
    pub(super) fn has(&self, answer: Answer<'_>) -> bool {
        match &self.known {
            Some((sense, known)) if *sense == answer.sense => {
                known.contains(&Known::new(answer.value, answer.sense))
            }
            _ => self.values.iter().any(|value| answer.equals(value)),
        }
    }
}

impl Known {
    fn new(value: &Value, sense: Sense) -> Self {
        match value {
            Value::Number(number) => Self::Number(number.exact()),
            Value::String(text) => {
                let known = match sense {
                    Sense::Text | Sense::Date | Sense::Typed => None,
                    Sense::Time => with_seconds(text).map(Self::Time),
                    Sense::Moment => moment(text).map(Self::Moment),
                };
                known.unwrap_or_else(|| Self::Text(text.clone()))
            }
            other => Self::Other(other.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json::parse;

    #[test]
    fn a_value_that_is_looked_up_is_found_where_one_by_one_is() {
        let values: Vec<_> = [
            r#"3 3.0 30e-1 3.0000000000000000001 -0 0 true false "3" "3.0" "true" "[3]" "null" "é" "e" "web""#,
            r#"[3] [3.0] ["a","b"] ["b","a"] {"other":"x"} {"other":3} {"other":3.0}"#,
            r#""09:30" "09:30:00" "9:30" "0930xxxx" "2027-03-13" "2027-03-13T09:30:00+01:00""#,
            r#""2027-03-13T08:30:00Z" "2027-03-13t08:30:00.0z" "2027-03-13T08:30:01Z" "2027-03-13T08:30""#,
        ]
        .iter()
        .flat_map(|line| line.split(' '))
        .map(|text| parse(text).unwrap())
        .collect();
        for sense in [Sense::Text, Sense::Date, Sense::Time, Sense::Moment, Sense::Typed] {
            for one in &values {
                let one_by_one = Among::new(vec![one.clone(), "else".into()]);
                let mut looked_up = one_by_one.clone();
                looked_up.learn(sense);
                for value in &values {
                    let answer = Answer { value, sense };
                    assert_eq!(
                        looked_up.has(answer),
                        one_by_one.has(answer),
                        "{value} in {one} as {sense:?}"
                    );
                }
            }
        }
    }
}
