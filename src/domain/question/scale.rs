//! `rating` and `opinion_scale`: a whole number of a few.

use std::ops::RangeInclusive;

use super::entered::json_or_text;
use super::json::object;
use super::{Fault, Rules, labels};
use crate::clock::Timestamp;
use crate::domain::fields::Fields;
use crate::domain::json::{Number, Value};
use crate::domain::violation::Rule;

/// A whole number from a small range, whose ends and steps between may have labels.
#[derive(Debug, Clone)]
pub struct Scale {
    range: RangeInclusive<i64>,
}

impl Scale {
    /// From 1 to `max`, which is 5.
    pub(super) fn read_rating(fields: &mut Fields<'_, '_>) -> Self {
        let max = fields.integer("max", 2..=10);
        let range = 1..=max.unwrap_or(5);
        check_labels(fields, &range);
        Self { range }
    }

    /// From `min`, which is 0 or 1, to `max`, which is 10. `nps` asks for the scale of the net promoter score, 0 to 10.
    pub(super) fn read_opinion(fields: &mut Fields<'_, '_>) -> Self {
        let nps = fields.flag("nps");
        let min = fields.integer("min", 0..=1);
        let max = fields.integer("max", 2..=10);
        let range = min.unwrap_or(0)..=max.unwrap_or(10);
        if nps == Some(true) && range != (0..=10) {
            fields.refuse(
                "nps",
                Rule::InvalidRange,
                "`nps` asks on a scale from 0 to 10; leave out `min` and `max`",
            );
        }
        check_labels(fields, &range);
        Self { range }
    }
}

fn check_labels(fields: &mut Fields<'_, '_>, range: &RangeInclusive<i64>) {
    let values: Vec<_> = range.clone().map(|number| number.to_string()).collect();
    labels::check(fields, &values);
}

impl Rules for Scale {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        let Value::Number(number) = answer else {
            let message = format!("Enter {}, not {}", self.expects(), answer.kind());
            return vec![Fault::new(Rule::TypeMismatch, message)];
        };
        let (value, [min, max]) =
            (number.exact(), [self.range.start(), self.range.end()].map(|end| Number::from(*end).exact()));
        [(!value.is_integer(), Rule::NotAnInteger), (value < min || value > max, Rule::OutOfRange)]
            .into_iter()
            .filter(|(is_broken, _)| *is_broken)
            .map(|(_, rule)| Fault::new(rule, format!("Enter {}", self.expects())))
            .collect()
    }

    fn schema(&self) -> Value {
        object([
            ("type", Some("integer".into())),
            ("minimum", Some((*self.range.start()).into())),
            ("maximum", Some((*self.range.end()).into())),
        ])
    }

    fn example(&self) -> Value {
        (*self.range.start()).into()
    }

    fn range(&self) -> [Option<Value>; 2] {
        [self.range.start(), self.range.end()].map(|bound| Some((*bound).into()))
    }

    fn entered(&self, text: &str) -> Value {
        json_or_text(text, |value| matches!(value, Value::Number(_)))
    }

    fn expects(&self) -> String {
        format!("a whole number from {} to {}", self.range.start(), self.range.end())
    }
}
