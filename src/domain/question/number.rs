//! `number`, optionally with bounds and a step; `rating` and `opinion_scale`: whole numbers from a small range, whose
//! values may have labels.

use std::ops::RangeInclusive;

use crate::clock::Timestamp;
use crate::domain::json::{Number, Steps, Value};
use crate::domain::language::{Texts, fill};
use crate::domain::question::control::{Control, LineKind};
use crate::domain::question::json::object;
use crate::domain::question::labels::{self, Labels};
use crate::domain::question::{AnswerError, Rules, json_or_text};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Rules of `number`, `rating` and `opinion_scale`. All comparisons are exact in decimal: 0.3 is three steps of 0.1.
#[derive(Debug, Clone)]
pub(super) struct Quantity {
    min: Option<Number>,
    max: Option<Number>,
    step: Option<(Number, Steps)>,
    is_whole: bool,
    example: i64,
    /// Of a `rating` or an `opinion_scale`.
    scale: Option<Scale>,
}

#[derive(Debug, Clone)]
struct Scale {
    range: RangeInclusive<i64>,
    labels: Labels,
    is_rating: bool,
}

impl Quantity {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let (min, max) = (fields.number("min"), fields.number("max"));
        if let (Some(min), Some(max)) = (&min, &max)
            && min.exact() > max.exact()
        {
            let message = format!("`min` ({}) must not be above `max` ({})", min.text(), max.text());
            fields.refuse("min", Rule::InvalidRange, message);
        }
        let step = read_step(fields, min.as_ref());
        let is_whole = fields.flag("integer").unwrap_or(false);
        if let (Some(min), Some(max), true) = (&min, &max, is_whole)
            && min.exact() <= max.exact()
            && min.value().ceil() > max.value()
        {
            let message = format!("there is no whole number from {} to {}", min.text(), max.text());
            fields.refuse("integer", Rule::InvalidRange, message);
        }
        Self { min, max, step, is_whole, example: 42, scale: None }
    }

    /// Parses a `rating`: from 1 to `max`, 5 by default.
    pub(super) fn read_rating(fields: &mut Fields<'_, '_>) -> Self {
        let max = fields.integer("max", 2..=10);
        Self::labelled(fields, 1..=max.unwrap_or(5), true)
    }

    /// Parses an `opinion_scale`: from `min`, 0 or 1, to `max`, 10 by default. `nps` requires the scale of the net promoter
    /// score, 0 to 10.
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
        Self::labelled(fields, range, false)
    }

    /// Parses `labels`, for whole numbers within `range`.
    fn labelled(fields: &mut Fields<'_, '_>, range: RangeInclusive<i64>, is_rating: bool) -> Self {
        let values: Vec<_> = range.clone().map(|number| number.to_string()).collect();
        let labels = labels::read(fields, &values);
        let (min, max) = (*range.start(), *range.end());
        let scale = Some(Scale { range, labels, is_rating });
        Self { min: Some(min.into()), max: Some(max.into()), step: None, is_whole: true, example: min, scale }
    }
}

/// Parses `step`, which counts from `min`, or from 0 without one.
fn read_step(fields: &mut Fields<'_, '_>, min: Option<&Number>) -> Option<(Number, Steps)> {
    let step = fields.number("step")?;
    let start = min.cloned().unwrap_or_else(|| 0.into());
    let steps = Steps::new(&start.exact(), &step.exact());
    if steps.is_none() {
        let message = "`step` must be above 0, and within 19 decimal places of `min`";
        fields.refuse("step", Rule::InvalidRange, message);
    }
    Some((step, steps?))
}

impl Rules for Quantity {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        let Value::Number(number) = answer else {
            return vec![AnswerError::wrong_type(&self.expects(texts), answer, texts)];
        };
        let value = number.exact();
        let below = self.min.as_ref().is_some_and(|min| value < min.exact());
        let above = self.max.as_ref().is_some_and(|max| value > max.exact());
        let between_steps = self.step.as_ref().is_some_and(|(_, steps)| !steps.contains(&value));
        [
            (self.is_whole && !value.is_integer(), Rule::NotAnInteger),
            (below || above, Rule::OutOfRange),
            (between_steps, Rule::NotAStep),
        ]
        .into_iter()
        .filter(|(broken, _)| *broken)
        .map(|(_, rule)| AnswerError::enter(rule, &self.expects(texts), texts))
        .collect()
    }

    fn schema(&self) -> Value {
        let kind = if self.is_whole { "integer" } else { "number" };
        let number = |number: &Number| Value::Number(number.clone());
        // Validators divide as `f64`, where 0.3 is not a multiple of 0.1.
        let multiple = |(step, steps): &&(Number, Steps)| steps.contains_zero() && step.integer().is_some();
        let multiple = self.step.as_ref().filter(multiple);
        object([
            ("type", Some(kind.into())),
            ("minimum", self.min.as_ref().map(number)),
            ("maximum", self.max.as_ref().map(number)),
            ("multipleOf", multiple.map(|(step, _)| number(step))),
        ])
    }

    fn example(&self) -> Value {
        self.example.into()
    }

    fn control(&self) -> Control<'_> {
        match &self.scale {
            Some(Scale { range, labels, is_rating }) => {
                Control::Scale { values: range.clone(), labels, is_rating: *is_rating }
            }
            None if self.is_whole => LineKind::WholeNumber.control(),
            None => LineKind::Number.control(),
        }
    }

    fn range(&self) -> [Option<Value>; 2] {
        [&self.min, &self.max].map(|bound| bound.clone().map(Value::Number))
    }

    fn parse_text(&self, text: &str) -> Value {
        json_or_text(text, |value| matches!(value, Value::Number(_)))
    }

    fn expects(&self, texts: &Texts) -> String {
        let number = if self.is_whole { texts.expects_integer } else { texts.expects_number };
        let range = match (&self.min, &self.max) {
            (Some(min), Some(max)) => {
                fill(texts.range_between, &[("min", &min.text()), ("max", &max.text())])
            }
            (Some(min), None) => fill(texts.range_from, &[("min", &min.text())]),
            (None, Some(max)) => fill(texts.range_to, &[("max", &max.text())]),
            (None, None) => String::new(),
        };
        let steps = self.step.as_ref().map(|(step, _)| fill(texts.steps, &[("step", &step.text())]));
        fill(number, &[("range", &range), ("steps", &steps.unwrap_or_default())])
    }
}
