//! `date`, `time` and `datetime`, between bounds that may be relative to today.

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, Time};

use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::condition::{MAX_DATETIME_LENGTH, ValueType};
use crate::domain::json::Value;
use crate::domain::question::json::{object, patterns};
use crate::domain::question::text::check_line;
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Rules of `date`, `time` and `datetime`.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    unit: Unit,
    min: Option<Bound>,
    max: Option<Bound>,
}

/// The type of value. All are compared as nanoseconds: since 1970-01-01T00:00:00Z, or since midnight.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    /// `YYYY-MM-DD`.
    Date,
    /// `HH:MM` or `HH:MM:SS`.
    Time,
    /// RFC 3339, with an offset.
    DateTime,
}

/// The earliest or latest allowed value.
#[derive(Debug, Clone)]
struct Bound {
    text: String,
    point: Point,
}

#[derive(Debug, Clone, Copy)]
enum Point {
    Fixed(i128),
    /// Days from today, in UTC.
    Today(i64),
}

const DAY: i128 = DAY_MILLIS as i128 * 1_000_000;

impl Unit {
    fn read(self, text: &str) -> Option<i128> {
        match self {
            Self::Date => read_date(text).map(|date| i128::from(date.to_julian_day() - UNIX_EPOCH) * DAY),
            Self::Time => read_time(text).map(|time| (time - Time::MIDNIGHT).whole_nanoseconds()),
            Self::DateTime => read_datetime(text).map(OffsetDateTime::unix_timestamp_nanos),
        }
    }

    fn rule(self) -> Rule {
        match self {
            Self::Date => Rule::InvalidDate,
            Self::Time => Rule::InvalidTime,
            Self::DateTime => Rule::InvalidDatetime,
        }
    }

    fn sample(self) -> &'static str {
        match self {
            Self::Date => "2027-03-13",
            Self::Time => "09:30",
            Self::DateTime => "2027-03-13T09:30:00+01:00",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Date => "a date",
            Self::Time => "a time",
            Self::DateTime => "a date and time with its offset",
        }
    }
}

/// Pattern of a date and time, for JSON Schema.
const DATETIME: &str = concat!(
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}",
    r"(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$(?!\n)"
);

/// The Julian day of 1970-01-01.
const UNIX_EPOCH: i32 = 2_440_588;

fn read_date(text: &str) -> Option<Date> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(year.into(), month, u8::try_from(day).ok()?).ok()
}

fn read_time(text: &str) -> Option<Time> {
    let [hour, minute, second] = match text.len() {
        5 => numbers(text, ':', [2, 2]).map(|[hour, minute]| [hour, minute, 0]),
        _ => numbers(text, ':', [2, 2, 2]),
    }?;
    let part = |number: u16| u8::try_from(number).ok();
    Time::from_hms(part(hour)?, part(minute)?, part(second)?).ok()
}

fn read_datetime(text: &str) -> Option<OffsetDateTime> {
    // The crate `time` accepts any character between date and time.
    let is_separated = matches!(text.as_bytes().get(10), Some(b'T' | b't'));
    let is_short = text.len() <= MAX_DATETIME_LENGTH;
    (is_separated && is_short).then(|| OffsetDateTime::parse(text, &Rfc3339).ok())?
}

/// Parses the numbers in `text`, separated by `separator`, each of the given number of ASCII digits.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u16; N]> {
    let mut parts = text.split(separator);
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_valid = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_valid.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

impl Bound {
    /// Maximum days between a bound and today: a hundred years.
    const MAX_DAYS: i64 = 36_525;

    fn read(fields: &mut Fields<'_, '_>, name: &'static str, unit: Unit) -> Option<Self> {
        let text = fields.text(name, 40)?;
        let today = || read_today(&text).filter(|_| !matches!(unit, Unit::Time)).map(Point::Today);
        let Some(point) = unit.read(&text).map(Point::Fixed).or_else(today) else {
            let or_today = if matches!(unit, Unit::Time) { "" } else { ", or like today+30d" };
            let message = format!("`{text}` is not {} like {}{or_today}", unit.name(), unit.sample());
            fields.refuse(name, Rule::InvalidDatetime, message);
            return None;
        };
        Some(Self { text, point })
    }

    /// The bound as the earliest allowed value: the start of its day, if relative. `None` if relative and `now` is unknown.
    fn start(&self, now: Option<Timestamp>) -> Option<i128> {
        let today = |now: Timestamp| i128::from(now.millis().div_euclid(DAY_MILLIS)) * DAY;
        match self.point {
            Point::Fixed(point) => Some(point),
            Point::Today(days) => now.map(|now| today(now) + i128::from(days) * DAY),
        }
    }

    /// The bound as the latest allowed value: the end of its day, if relative. `None` if relative and `now` is unknown.
    fn end(&self, now: Option<Timestamp>) -> Option<i128> {
        match self.point {
            Point::Fixed(point) => Some(point),
            Point::Today(_) => self.start(now).map(|start| start + DAY - 1),
        }
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
    pub(super) fn read(fields: &mut Fields<'_, '_>, unit: Unit) -> Self {
        let (min, max) = (Bound::read(fields, "min", unit), Bound::read(fields, "max", unit));
        if let (Some(min), Some(max)) = (&min, &max)
            && is_always_empty(min.point, max.point)
        {
            let message = format!("`min` ({}) must not be after `max` ({})", min.text, max.text);
            fields.refuse("min", Rule::InvalidRange, message);
        }
        Self { unit, min, max }
    }

    /// The fixed bounds as patterns. Dates with times have none: their texts do not sort chronologically.
    fn bounds(&self) -> impl Iterator<Item = String> {
        let fixed = |bound: &'_ Option<Bound>| match (self.unit, bound) {
            (Unit::Date | Unit::Time, Some(Bound { text, point: Point::Fixed(_) })) => Some(text.clone()),
            _ => None,
        };
        let (min, max) = (fixed(&self.min), fixed(&self.max));
        min.map(|min| not_before(&min)).into_iter().chain(max.map(|max| not_after(&max)))
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

/// Whether `min` is after `max` on every day.
fn is_always_empty(min: Point, max: Point) -> bool {
    match (min, max) {
        (Point::Fixed(min), Point::Fixed(max)) => min > max,
        (Point::Today(min), Point::Today(max)) => min > max,
        (Point::Fixed(_), Point::Today(_)) | (Point::Today(_), Point::Fixed(_)) => false,
    }
}

impl Rules for Calendar {
    fn check(&self, answer: &Value, now: Option<Timestamp>) -> Vec<AnswerError> {
        check_line(answer, |text| {
            let error = |rule| AnswerError::new(rule, format!("Enter {}", self.expects()));
            let point = self.unit.read(text).ok_or_else(|| error(self.unit.rule()))?;
            let is_early = self.min.as_ref().and_then(|min| min.start(now)).is_some_and(|min| point < min);
            let is_late = self.max.as_ref().and_then(|max| max.end(now)).is_some_and(|max| point > max);
            if is_early || is_late { Err(error(Rule::OutOfRange)) } else { Ok(()) }
        })
    }

    fn schema(&self) -> Value {
        let (format, pattern) = match self.unit {
            Unit::Date => (Some("date"), r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)"),
            // The format `time` requires an offset.
            Unit::Time => (None, r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$(?!\n)"),
            Unit::DateTime => (Some("date-time"), DATETIME),
        };
        object([
            ("type", Some("string".into())),
            ("format", format.map(Value::from)),
            ("pattern", Some(pattern.into())),
            ("allOf", patterns(self.bounds())),
        ])
    }

    fn example(&self) -> Value {
        self.unit.sample().into()
    }

    fn value_type(&self) -> ValueType {
        match self.unit {
            Unit::Date => ValueType::Date,
            Unit::Time => ValueType::Time,
            Unit::DateTime => ValueType::DateTime,
        }
    }

    fn range(&self) -> [Option<Value>; 2] {
        [&self.min, &self.max].map(|bound| {
            let fixed = bound.as_ref().filter(|bound| matches!(bound.point, Point::Fixed(_)))?;
            Some(fixed.text.as_str().into())
        })
    }

    fn expects(&self) -> String {
        let bound = |word: &str, bound: &Option<Bound>| {
            bound.as_ref().map(|bound| format!(", {word} {}", bound.text)).unwrap_or_default()
        };
        let (min, max) = (bound("from", &self.min), bound("up to", &self.max));
        format!("{} like {}{min}{max}", self.unit.name(), self.unit.sample())
    }
}
