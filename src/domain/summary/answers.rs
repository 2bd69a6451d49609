//! Counts of the answers to one question.

use std::collections::HashMap;

use super::numbers::{Numbers, quantile};
use super::report::{AnswerSummary, ChoiceValue, LatestText, MatrixRow, ValueCount};
use super::tally::{Tally, cut};
use super::timeline::{DAY, HOUR, TimeCounts};
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

/// An [`AnswerSummary`] in the making, with what it does not have itself.
#[derive(Debug)]
pub(super) struct AnswerCounts {
    summary: AnswerSummary,
    answered: u64,
    value_type: ValueType,
    /// The places of the options.
    places: HashMap<ChoiceValue, usize>,
    /// Texts, if they are no options.
    texts: Tally,
    /// Options that were removed.
    removed: Tally,
    numbers: Numbers,
    times: TimeCounts,
    /// The first and the last date, in nanoseconds and as it was sent.
    range: Option<[(i128, String); 2]>,
    /// The rows of a matrix by id, with the places of their reports.
    rows: HashMap<String, (usize, AnswerCounts)>,
}

impl AnswerCounts {
    /// Begins the counts of a question, with at most `memory` bytes for different values.
    pub(super) fn new(question: &Question, memory: usize) -> Self {
        let rules = question.kind.rules();
        let value_type = if rules.is_untyped() { ValueType::Untyped } else { rules.value_type() };
        let control = rules.control();
        let mut counts = Self::of(empty(&control, question), value_type, memory);
        if let Control::Matrix { rows, columns, takes_several } = control
            && let Some(memory) = (memory / rows.len()).checked_sub(columns.len() * CELL)
        {
            let row = |(place, row): (usize, &str)| {
                (row.to_owned(), (place, Self::of(choice(list(columns), takes_several), value_type, memory)))
            };
            counts.rows = rows.labelled().map(|(row, _)| row).enumerate().map(row).collect();
        }
        counts
    }

    fn of(mut summary: AnswerSummary, value_type: ValueType, memory: usize) -> Self {
        let options = summary.options_mut().map(|options| &**options).unwrap_or_default();
        Self {
            places: options.iter().zip(0..).map(|(option, place)| (option.value.clone(), place)).collect(),
            summary,
            answered: 0,
            value_type,
            texts: Tally::new(memory / 2),
            removed: Tally::new(memory / 2),
            numbers: Numbers::new(memory),
            times: TimeCounts::by(if value_type == ValueType::Date { DAY } else { HOUR }),
            range: None,
            rows: HashMap::new(),
        }
    }

    /// Counts an answer. Returns false if it is empty, or the question cannot have it.
    pub(super) fn add(&mut self, answer: &Value, submission: &Submission) -> bool {
        let is_answer = !is_empty(answer) && self.count(answer, submission);
        self.answered += u64::from(is_answer);
        is_answer
    }

    fn count(&mut self, answer: &Value, submission: &Submission) -> bool {
        match (&mut self.summary, answer) {
            (AnswerSummary::Choice { multiple: true, .. }, Value::Array(items)) => {
                items.iter().fold(false, |any, item| self.choose(item, None) || any)
            }
            (AnswerSummary::Ranking { .. }, Value::Array(items)) => {
                items.iter().zip(1..).fold(false, |any, (item, place)| self.choose(item, Some(place)) || any)
            }
            (
                AnswerSummary::Choice { multiple: false, .. }
                | AnswerSummary::Scale { .. }
                | AnswerSummary::Nps { .. },
                _,
            ) => self.choose(answer, None),
            (AnswerSummary::Number { .. }, Value::Number(number)) => self.numbers.add(number.value()),
            (AnswerSummary::Date { .. }, Value::String(text)) => self.add_date(text),
            (AnswerSummary::Text { latest, .. }, _) => {
                let text = match answer {
                    Value::String(text) => text,
                    Value::Number(_) | Value::Bool(_) if self.value_type == ValueType::Untyped => {
                        &answer.to_string()
                    }
                    _ => return false,
                };
                self.texts.add(text);
                if latest.len() < LATEST {
                    let value = cut(text).map_or_else(|| text.clone(), |cut| format!("{cut}…"));
                    latest.push(LatestText { id: submission.id, at: submission.submitted_at(), value });
                }
                true
            }
            (AnswerSummary::Matrix { .. }, Value::Object(cells)) => {
                // The cells of a very large matrix are not counted.
                let mut any = self.rows.is_empty();
                for (row, cell) in cells {
                    any |= self.rows.get_mut(row).is_some_and(|(_, row)| row.add(cell, submission));
                }
                any
            }
            _ => false,
        }
    }

    /// Counts a choice, at a `place` of a ranking. Returns false if it is neither an option, now or earlier, nor free text.
    fn choose(&mut self, choice: &Value, place: Option<u32>) -> bool {
        let Some(options) = self.summary.options_mut() else { return false };
        let has_texts = matches!(options.first(), Some(ValueCount { value: ChoiceValue::Text(_), .. }));
        let value = match choice {
            Value::String(text) => ChoiceValue::Text(text.clone()),
            Value::Bool(flag) => ChoiceValue::Flag(*flag),
            Value::Number(number) => ChoiceValue::Number(number.integer().unwrap_or(i64::MIN)),
            _ => match choice.get("other") {
                Some(Value::String(text)) if has_texts => {
                    self.texts.add(text);
                    return true;
                }
                _ => return false,
            },
        };
        match (self.places.get(&value), value) {
            (Some(found), _) => {
                let option = &mut options[*found];
                option.count += 1;
                // Until the end, the sum.
                option.mean = place.map(|place| option.mean.unwrap_or_default() + f64::from(place));
            }
            (None, ChoiceValue::Text(text)) if has_texts => self.removed.add(&text),
            _ => return false,
        }
        true
    }

    fn add_date(&mut self, text: &str) -> bool {
        let Some(time) = self.value_type.nanoseconds(text) else { return false };
        let [first, last] =
            self.range.get_or_insert_with(|| [(time, text.to_owned()), (time, text.to_owned())]);
        if time < first.0 {
            *first = (time, text.to_owned());
        } else if time > last.0 {
            *last = (time, text.to_owned());
        }
        self.times.add(i64::try_from(time.div_euclid(1_000_000)).unwrap_or_default());
        true
    }

    /// Returns the number of answers, and their summary.
    pub(super) fn finish(mut self) -> (u64, AnswerSummary) {
        let total = self.answered as f64;
        let (mut removed, more_removed) = self.removed.most_frequent(1);
        removed.iter_mut().for_each(|option| option.removed = true);
        match &mut self.summary {
            AnswerSummary::Choice { options, other, unlisted, .. } => {
                let (texts, more) = self.texts.most_frequent(1);
                (*other, *unlisted) = (texts, more + more_removed);
                options.extend(removed);
            }
            AnswerSummary::Ranking { options, unlisted } => {
                *unlisted = more_removed;
                for option in &mut *options {
                    option.mean = option.mean.map(|sum| sum / option.count as f64);
                }
                options.extend(removed);
            }
            AnswerSummary::Scale { options, mean, median } => {
                let value = |option: &ValueCount| match option.value {
                    ChoiceValue::Number(value) => (value as f64, option.count),
                    _ => (0.0, 0),
                };
                let given: Vec<_> = options.iter().map(value).collect();
                let sum: f64 = given.iter().map(|(value, count)| value * *count as f64).sum();
                *mean = Some(sum / total).filter(|mean| mean.is_finite());
                *median = quantile(&given, 0.5);
            }
            AnswerSummary::Nps { options, promoters, passives, detractors, score } => {
                let sum = |values: &[ValueCount]| values.iter().map(|option| option.count).sum();
                (*detractors, *passives, *promoters) =
                    (sum(&options[..7]), sum(&options[7..9]), sum(&options[9..]));
                let lead = *promoters as f64 - *detractors as f64;
                *score = (total > 0.0).then(|| (100.0 * lead / total).round() as i64);
            }
            AnswerSummary::Number { .. } => self.summary = self.numbers.finish(),
            AnswerSummary::Date { min, max, timeline } => {
                [*min, *max] = self.range.map_or([None, None], |range| range.map(|(_, text)| Some(text)));
                *timeline = self.times.finish(self.value_type == ValueType::Time);
            }
            AnswerSummary::Text { distinct, top, .. } => {
                *distinct = self.texts.distinct();
                *top = self.texts.most_frequent(2).0;
            }
            AnswerSummary::Matrix { rows } if self.rows.is_empty() => rows.clear(),
            AnswerSummary::Matrix { rows } => {
                for (place, counts) in self.rows.into_values() {
                    let (answered, summary) = counts.finish();
                    rows[place].answered = answered;
                    if let AnswerSummary::Choice { options, unlisted, .. } = summary {
                        (rows[place].options, rows[place].unlisted) = (options, unlisted);
                    }
                }
            }
        }
        (self.answered, self.summary)
    }
}

/// The summary of no answers to a question that is answered by `control`.
fn empty(control: &Control<'_>, question: &Question) -> AnswerSummary {
    match control {
        Control::One { options, .. } => choice(list(options), false),
        Control::Several { options, .. } => choice(list(options), true),
        Control::YesNo(labels) => {
            let option = |flag: bool| ValueCount::new(ChoiceValue::Flag(flag), labels.of(&flag.to_string()));
            choice([true, false].map(option).into(), false)
        }
        Control::Consent(_) => choice(vec![ValueCount::new(ChoiceValue::Flag(true), None)], false),
        Control::Ranking(options) => AnswerSummary::Ranking { options: list(options), unlisted: 0 },
        Control::Scale { values, labels, .. } => {
            let option =
                |value: i64| ValueCount::new(ChoiceValue::Number(value), labels.of(&value.to_string()));
            let options = values.clone().map(option).collect();
            match question.setting("nps") {
                Some(Value::Bool(true)) => {
                    AnswerSummary::Nps { options, promoters: 0, passives: 0, detractors: 0, score: None }
                }
                _ => AnswerSummary::Scale { options, mean: None, median: None },
            }
        }
        Control::Matrix { rows, .. } => {
            let row = |ValueCount { value, label, .. }| MatrixRow {
                value,
                label,
                answered: 0,
                options: Vec::new(),
                unlisted: 0,
            };
            AnswerSummary::Matrix { rows: list(rows).into_iter().map(row).collect() }
        }
        Control::Line(Line { kind: LineKind::Number | LineKind::WholeNumber, .. }) => {
            Numbers::default().finish()
        }
        Control::Line(Line { kind: LineKind::Date | LineKind::Time | LineKind::DateTime, .. }) => {
            AnswerSummary::Date { min: None, max: None, timeline: TimeCounts::default().finish(false) }
        }
        _ => AnswerSummary::Text { distinct: None, top: Vec::new(), latest: Vec::new() },
    }
}

fn choice(options: Vec<ValueCount>, multiple: bool) -> AnswerSummary {
    AnswerSummary::Choice { multiple, options, other: Vec::new(), unlisted: 0 }
}

fn list(options: &OptionList) -> Vec<ValueCount> {
    let count = |(value, label): (&str, &str)| {
        ValueCount::new(ChoiceValue::Text(value.to_owned()), Some(label).filter(|label| *label != value))
    };
    options.labelled().map(count).collect()
}
