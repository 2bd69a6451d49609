//! `date`, `time` and `datetime`, between bounds that may be relative to today.

use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::condition::{DAY_NANOS, ValueType};
use crate::domain::json::Value;
use crate::domain::language::{ENGLISH, Texts, fill};
use crate::domain::question::control::{Control, Line, LineKind};
use crate::domain::question::json::{object, patterns};
use crate::domain::question::text::check_line;
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

#[derive(Debug, Clone)]
pub(super) struct Calendar {
    unit: &'static Unit,
    min: Option<Bound>,
    max: Option<Bound>,
}

/// A type of date or time.
#[derive(Debug)]
pub(super) struct Unit {
    value_type: ValueType,
    /// The template of what answers must be.
    expects: fn(&Texts) -> &'static str,
    sample: &'static str,
    rule: Rule,
    /// Format and pattern for JSON Schema.
    format: Option<&'static str>,
    pattern: &'static str,
}

pub(super) const DATE: Unit = Unit {
    value_type: ValueType::Date,
    expects: |texts| texts.expects_date,
    sample: "2027-03-13",
    rule: Rule::InvalidDate,
    format: Some("date"),
    pattern: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)",
};

pub(super) const TIME: Unit = Unit {
    value_type: ValueType::Time,
    expects: |texts| texts.expects_time,
    sample: "09:30",
    rule: Rule::InvalidTime,
    // The format `time` requires an offset.
    format: None,
    pattern: r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$(?!\n)",
};

pub(super) const DATETIME: Unit = Unit {
    value_type: ValueType::DateTime,
    expects: |texts| texts.expects_datetime,
    sample: "2027-03-13T09:30:00+01:00",
    rule: Rule::InvalidDatetime,
    format: Some("date-time"),
    pattern: concat!(
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}",
        r"(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$(?!\n)"
    ),
};

impl Unit {
    /// Describes a valid answer, between bounds in words.
    fn expects(&self, texts: &Texts, from: &str, to: &str) -> String {
        fill((self.expects)(texts), &[("sample", &self.sample), ("from", &from), ("to", &to)])
    }
}

#[derive(Debug, Clone)]
struct Bound {
    text: String,
    nanoseconds: i128,
    /// Whether it counts from the start of today, in UTC.
    is_relative: bool,
}

impl Bound {
    /// Maximum days between a bound and today: a hundred years.
    const MAX_DAYS: i64 = 36_525;

    fn read(fields: &mut Fields<'_, '_>, name: &'static str, unit: &Unit) -> Option<Self> {
        let text = fields.text(name, 40)?;
        let has_today = unit.value_type != ValueType::Time;
        if let Some(nanoseconds) = unit.value_type.nanoseconds(&text) {
            return Some(Self { text, nanoseconds, is_relative: false });
        }
        if let Some(days) = read_today(&text).filter(|_| has_today) {
            return Some(Self { text, nanoseconds: i128::from(days) * DAY_NANOS, is_relative: true });
        }
        let or_today = if has_today { ", or like today+30d" } else { "" };
        let message = format!("`{text}` is not {}{or_today}", unit.expects(ENGLISH, "", ""));
        fields.refuse(name, Rule::InvalidDatetime, message);
        None
    }

    /// The bound in nanoseconds: if relative, the start of its day, or the end for a `max`. `None` if relative and `now` is
    /// unknown.
    fn nanoseconds(&self, now: Option<Timestamp>, is_max: bool) -> Option<i128> {
        if !self.is_relative {
            return Some(self.nanoseconds);
        }
        let today = i128::from(now?.millis().div_euclid(DAY_MILLIS)) * DAY_NANOS;
        Some(today + self.nanoseconds + if is_max { DAY_NANOS - 1 } else { 0 })
    }
}

/// Parses `today`, `today+30d` or `today-18d` as days from today.
fn read_today(text: &str) -> Option<i64> {
    let rest = text.strip_prefix("today")?;
    if rest.is_empty() {
        return Some(0);
    }
    let days = rest.strip_suffix('d').filter(|days| days.starts_with(['+', '-']))?;
    days.parse().ok().filter(|days: &i64| days.abs() <= Bound::MAX_DAYS)
}

impl Calendar {
    pub(super) fn read(fields: &mut Fields<'_, '_>, unit: &'static Unit) -> Self {
        let (min, max) = (Bound::read(fields, "min", unit), Bound::read(fields, "max", unit));
        if let (Some(min), Some(max)) = (&min, &max)
            && min.is_relative == max.is_relative
            && min.nanoseconds > max.nanoseconds
        {
            let message = format!("`min` ({}) must not be after `max` ({})", min.text, max.text);
            fields.refuse("min", Rule::InvalidRange, message);
        }
        Self { unit, min, max }
    }

    fn fixed_bounds(&self) -> [Option<&str>; 2] {
        [&self.min, &self.max].map(|bound| {
            let fixed = bound.as_ref().filter(|bound| !bound.is_relative)?;
            Some(fixed.text.as_str())
        })
    }

    /// The fixed bounds as patterns. Dates with times have none: their texts do not sort chronologically.
    fn bound_patterns(&self) -> impl Iterator<Item = String> {
        let is_sorted = self.unit.value_type != ValueType::DateTime;
        let [min, max] = self.fixed_bounds().map(|bound| bound.filter(|_| is_sorted));
        min.map(not_before).into_iter().chain(max.map(not_after))
    }
}

/// Returns a pattern for the prefixes of dates or times not before `min`.
fn not_before(min: &str) -> String {
    // `09:30` equals `09:30:00`.
    let min = min.strip_suffix(":00").filter(|minute| minute.contains(':')).unwrap_or(min);
    let later = digits(min).filter(|(_, digit)| *digit < 9);
    let later = later.map(|(place, digit)| format!("{}[{}-9]", &min[..place], digit + 1));
    format!("^(?:{})", later.chain([min.to_owned()]).collect::<Vec<_>>().join("|"))
}

/// Returns a pattern for the prefixes of dates or times not after `max`.
fn not_after(max: &str) -> String {
    let minute = max.get(..5).filter(|_| max.contains(':'));
    let max = if minute == Some(max) { format!("{max}:00") } else { max.to_owned() };
    let earlier = digits(&max).filter(|(_, digit)| *digit > 0);
    let earlier = earlier.map(|(place, digit)| format!("{}[0-{}]", &max[..place], digit - 1));
    let same = minute.map(|minute| format!("{minute}$")).into_iter().chain([max.clone()]);
    format!("^(?:{})", earlier.chain(same).collect::<Vec<_>>().join("|"))
}

/// Returns the digits of `text` with their byte offsets.
fn digits(text: &str) -> impl Iterator<Item = (usize, u32)> {
    text.char_indices().filter_map(|(place, character)| Some((place, character.to_digit(10)?)))
}

impl Rules for Calendar {
    fn check(&self, answer: &Value, now: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        check_line(answer, texts, |text| {
            let error = |rule| AnswerError::enter(rule, &self.expects(texts), texts);
            let point = self.unit.value_type.nanoseconds(text).ok_or_else(|| error(self.unit.rule))?;
            let min = self.min.as_ref().and_then(|min| min.nanoseconds(now, false));
            let max = self.max.as_ref().and_then(|max| max.nanoseconds(now, true));
            let (is_early, is_late) =
                (min.is_some_and(|min| point < min), max.is_some_and(|max| point > max));
            if is_early || is_late { Err(error(Rule::OutOfRange)) } else { Ok(()) }
        })
    }

    fn schema(&self) -> Value {
        object([
            ("type", Some("string".into())),
            ("format", self.unit.format.map(Value::from)),
            ("pattern", Some(self.unit.pattern.into())),
            ("allOf", patterns(self.bound_patterns())),
        ])
    }

    fn control(&self) -> Control<'_> {
        let kind = match self.unit.value_type {
            ValueType::Time => LineKind::Time,
            ValueType::DateTime => LineKind::DateTime,
            ValueType::Date | ValueType::Text | ValueType::Untyped => LineKind::Date,
        };
        Control::Line(Line { kind, placeholder: None, bounds: self.fixed_bounds() })
    }

    fn example(&self) -> Value {
        self.unit.sample.into()
    }

    fn value_type(&self) -> ValueType {
        self.unit.value_type
    }

    fn range(&self) -> [Option<Value>; 2] {
        self.fixed_bounds().map(|bound| bound.map(Value::from))
    }

    fn expects(&self, texts: &Texts) -> String {
        let from =
            self.min.as_ref().map(|min| fill(texts.date_from, &[("min", &min.text)])).unwrap_or_default();
        let to = self.max.as_ref().map(|max| fill(texts.date_to, &[("max", &max.text)])).unwrap_or_default();
        self.unit.expects(texts, &from, &to)
    }
}
