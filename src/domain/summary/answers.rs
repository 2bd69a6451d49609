//! Counts of the answers to one question.

use std::collections::HashMap;

use super::numbers::Numbers;
use super::report::{AnswerSummary, ChoiceValue, LatestText, MatrixRow, ValueCount};
use super::tally::{Tally, cut};
use super::timeline::Timeline;
use crate::clock::Timestamp;
use crate::domain::condition::ValueType;
use crate::domain::json::Value;
use crate::domain::question::control::{Control, Line, LineKind};
use crate::domain::question::options::OptionList;
use crate::domain::question::{Question, is_empty};
use crate::domain::submission::Submission;

/// Number of latest texts.
const LATEST: usize = 5;

/// About how many bytes the count of a cell of a matrix takes.
const CELL: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    Several,
    Ranking,
    Scale,
    Nps,
    Number,
    Date,
    Text,
    Matrix,
}

/// An [`AnswerSummary`] in the making.
#[derive(Debug)]
pub(super) struct AnswerCounts {
    kind: Kind,
    value_type: ValueType,
    pub(super) answered: u64,
    /// The options, or the rows of a matrix. The mean of a place in a ranking is the sum for now.
    options: Vec<ValueCount>,
    /// The places of the options.
    places: HashMap<ChoiceValue, usize>,
    /// The counts of the rows of a matrix; none if it has too many cells.
    rows: Vec<Self>,
    /// Options that were removed.
    removed: Tally,
    /// Texts that were given instead of an option.
    texts: Tally,
    latest: Vec<LatestText>,
    numbers: Numbers,
    times: Timeline,
}

impl AnswerCounts {
    /// Begins the counts of a question, with about `memory` bytes for different values.
    pub(super) fn new(question: &Question, memory: usize) -> Self {
        let rules = question.kind.rules();
        let value_type = if rules.is_untyped() { ValueType::Untyped } else { rules.value_type() };
        let flag = |flag: bool, label| option(ChoiceValue::Flag(flag), label);
        let (kind, options) = match rules.control() {
            Control::One { options, .. } => (Kind::One, list(options)),
            Control::Several { options, .. } => (Kind::Several, list(options)),
            Control::Ranking(options) => (Kind::Ranking, list(options)),
            Control::YesNo(labels) => {
                (Kind::One, vec![flag(true, labels.of("true")), flag(false, labels.of("false"))])
            }
            Control::Consent(_) => (Kind::One, vec![flag(true, None)]),
            Control::Scale { values, labels, .. } => {
                let is_nps = question.setting("nps") == Some(Value::Bool(true));
                let value = |value: i64| option(ChoiceValue::Number(value), labels.of(&value.to_string()));
                (if is_nps { Kind::Nps } else { Kind::Scale }, values.map(value).collect())
            }
            Control::Matrix { rows, columns, takes_several } => {
                let mut counts = Self::of(Kind::Matrix, value_type, list(rows), 0);
                let kind = if takes_several { Kind::Several } else { Kind::One };
                if let Some(memory) = (memory / rows.len().max(1)).checked_sub(columns.len() * CELL) {
                    let row = |_: &ValueCount| Self::of(kind, value_type, list(columns), memory);
                    counts.rows = counts.options.iter().map(row).collect();
                }
                return counts;
            }
            Control::Line(Line { kind: LineKind::Number | LineKind::WholeNumber, .. }) => {
                (Kind::Number, Vec::new())
            }
            Control::Line(Line { kind: LineKind::Date | LineKind::Time | LineKind::DateTime, .. }) => {
                (Kind::Date, Vec::new())
            }
            _ => (Kind::Text, Vec::new()),
        };
        Self::of(kind, value_type, options, memory)
    }

    fn of(kind: Kind, value_type: ValueType, options: Vec<ValueCount>, memory: usize) -> Self {
        Self {
            kind,
            value_type,
            answered: 0,
            places: options.iter().zip(0..).map(|(option, place)| (option.value.clone(), place)).collect(),
            options,
            rows: Vec::new(),
            removed: Tally::new(memory),
            texts: Tally::new(memory),
            latest: Vec::new(),
            numbers: Numbers::new(memory),
            times: Timeline::by(if value_type == ValueType::Date { "day" } else { "hour" }),
        }
    }

    /// Counts an answer. Returns false if it is empty, or the question cannot have it.
    pub(super) fn add(&mut self, answer: &Value, submission: &Submission) -> bool {
        let is_answer = !is_empty(answer) && self.count(answer, submission);
        self.answered += u64::from(is_answer);
        is_answer
    }

    fn count(&mut self, answer: &Value, submission: &Submission) -> bool {
        match (self.kind, answer) {
            (Kind::Scale | Kind::Nps, Value::Number(number)) => {
                self.choose(answer, 1) && self.numbers.add(number.value())
            }
            (Kind::One, _) => self.choose(answer, 1),
            (Kind::Several | Kind::Ranking, Value::Array(items)) => {
                items.iter().zip(1..).filter(|(item, place)| self.choose(item, *place)).count() > 0
            }
            (Kind::Number, Value::Number(number)) => self.numbers.add(number.value()),
            (Kind::Date, Value::String(text)) => {
                let millis = self.value_type.nanoseconds(text).map(|time| time.div_euclid(1_000_000) as i64);
                millis.map(|millis| self.times.add(Timestamp::from_millis(millis))).is_some()
            }
            (Kind::Text, Value::String(text)) => self.add_text(text, submission),
            (Kind::Text, Value::Number(_) | Value::Bool(_)) if self.value_type == ValueType::Untyped => {
                self.add_text(&answer.to_string(), submission)
            }
            (Kind::Matrix, Value::Object(cells)) => {
                let mut add = |id: &str, cell| {
                    let place = self.places.get(&ChoiceValue::Text(id.to_owned()))?;
                    Some(self.rows.get_mut(*place)?.add(cell, submission))
                };
                // The cells of a very large matrix are not counted.
                cells.iter().filter(|(id, cell)| add(id, cell) == Some(true)).count() > 0
                    || self.rows.is_empty()
            }
            _ => false,
        }
    }

    /// Counts a choice, at a `place` of a list. Returns false if it is neither an option, now or earlier, nor free text.
    fn choose(&mut self, choice: &Value, place: u32) -> bool {
        let has_texts = matches!(self.options.first(), Some(ValueCount { value: ChoiceValue::Text(_), .. }));
        let value = match (choice, choice.get("other")) {
            (Value::String(text), _) => ChoiceValue::Text(text.clone()),
            (Value::Bool(flag), _) => ChoiceValue::Flag(*flag),
            (Value::Number(number), _) => ChoiceValue::Number(number.integer().unwrap_or(i64::MIN)),
            (_, Some(Value::String(text))) if has_texts => {
                self.texts.add(text);
                return true;
            }
            _ => return false,
        };
        match (self.places.get(&value), value) {
            (Some(found), _) => {
                let option = &mut self.options[*found];
                option.count += 1;
                let sum = option.mean.unwrap_or_default() + f64::from(place);
                option.mean = Some(sum).filter(|_| self.kind == Kind::Ranking);
            }
            (None, ChoiceValue::Text(text)) if has_texts => self.removed.add(&text),
            _ => return false,
        }
        true
    }

    fn add_text(&mut self, text: &str, submission: &Submission) -> bool {
        self.texts.add(text);
        if self.latest.len() < LATEST {
            let (id, at) = (submission.id, submission.submitted_at());
            self.latest.push(LatestText { id, at, value: cut(text) });
        }
        true
    }

    pub(super) fn finish(self) -> AnswerSummary {
        match self.kind {
            Kind::One | Kind::Several | Kind::Ranking => {
                let multiple = self.kind != Kind::One;
                let (options, other, unlisted) = self.choices();
                AnswerSummary::Choice { multiple, options, other, unlisted }
            }
            Kind::Scale => {
                let (mean, median) = (self.numbers.mean(), self.numbers.median());
                AnswerSummary::Scale { options: self.options, mean, median }
            }
            Kind::Nps => {
                let [detractors, passives, promoters] = [0..7, 7..9, 9..11]
                    .map(|values| self.options[values].iter().map(|option| option.count).sum::<u64>());
                let share = (promoters as f64 - detractors as f64) * 100.0 / self.answered as f64;
                let score = (self.answered > 0).then_some(share.round() as i64);
                AnswerSummary::Nps { options: self.options, promoters, passives, detractors, score }
            }
            Kind::Number => self.numbers.finish(),
            Kind::Date => {
                let part = match self.value_type {
                    ValueType::Date => 0..10,
                    ValueType::Time => 11..19,
                    _ => 0..24,
                };
                let bound = |at: Timestamp| at.to_string()[part.clone()].to_owned();
                let (min, max) = self.times.span.map(|(min, max)| (bound(min), bound(max))).unzip();
                let point = |(at, count): (String, u64)| (at[part.start..].to_owned(), count);
                let timeline =
                    Timeline { points: self.times.points.into_iter().map(point).collect(), ..self.times };
                AnswerSummary::Date { min, max, timeline }
            }
            Kind::Text => {
                let (distinct, latest) = (self.texts.distinct(), self.latest);
                AnswerSummary::Text { distinct, top: self.texts.most_frequent(2).0, latest }
            }
            Kind::Matrix => {
                let row = |(row, counts): (ValueCount, Self)| {
                    let row = ValueCount { count: counts.answered, ..row };
                    let (options, _, unlisted) = counts.choices();
                    MatrixRow { row, options, unlisted }
                };
                AnswerSummary::Matrix { rows: self.options.into_iter().zip(self.rows).map(row).collect() }
            }
        }
    }

    /// Returns the options, then removed ones; texts given instead; and the number of choices that are in neither list.
    fn choices(mut self) -> (Vec<ValueCount>, Vec<ValueCount>, u64) {
        for option in &mut self.options {
            option.mean = option.mean.map(|sum| sum / option.count as f64);
        }
        let (removed, more_removed) = self.removed.most_frequent(1);
        self.options.extend(removed.into_iter().map(|option| ValueCount { removed: true, ..option }));
        let (other, more) = self.texts.most_frequent(1);
        (self.options, other, more_removed + more)
    }
}

fn option(value: ChoiceValue, label: Option<&str>) -> ValueCount {
    ValueCount { label: label.map(str::to_owned), ..value.into() }
}

fn list(options: &OptionList) -> Vec<ValueCount> {
    let count = |(value, label): (&str, &str)| {
        option(ChoiceValue::Text(value.to_owned()), Some(label).filter(|label| *label != value))
    };
    options.labelled().map(count).collect()
}
