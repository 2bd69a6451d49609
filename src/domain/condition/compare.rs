//! Comparison of an answer with a value: numbers by value, dates and times chronologically, text by code point.

use std::borrow::Cow;
use std::cmp::Ordering;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::clock::DAY_MILLIS;
use crate::domain::json::{self, Value};
use crate::domain::question::Rules;

/// How to interpret an answer that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    Text,
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A time of day, `HH:MM` or `HH:MM:SS`.
    Time,
    /// A date and time in RFC 3339.
    DateTime,
    /// Any value. An operand given as text also matches the number or boolean that it spells.
    Untyped,
}

/// Maximum bytes of a date and time.
const MAX_LENGTH: usize = 64;

#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub value: &'a Value,
    pub value_type: ValueType,
    /// Maximum characters to match against patterns; a longer text matches none.
    pub max_length: usize,
}

impl ValueType {
    /// Parses `text` as nanoseconds since 1970-01-01T00:00:00Z, or since midnight; `None` unless it is a valid date or time.
    pub fn nanoseconds(self, text: &str) -> Option<i128> {
        let moment = match (self, text.len()) {
            (Self::Date, 10) => &format!("{text}T00:00:00Z"),
            (Self::Time, 5) => &format!("1970-01-01T{text}:00Z"),
            (Self::Time, 8) => &format!("1970-01-01T{text}Z"),
            // An invalid answer may be very long, and compared very often.
            (Self::DateTime, ..=MAX_LENGTH) => text,
            _ => return None,
        };
        // The crate `time` accepts any character between date and time.
        let is_separated = matches!(moment.as_bytes().get(10), Some(b'T' | b't'));
        let moment = is_separated.then(|| OffsetDateTime::parse(moment, &Rfc3339).ok())??;
        Some(moment.unix_timestamp_nanos())
    }

    /// Compares two texts; `None` if either is not a valid value of this type.
    fn order(self, one: &str, other: &str) -> Option<Ordering> {
        match self {
            Self::Text | Self::Untyped => Some(one.cmp(other)),
            Self::Date | Self::Time | Self::DateTime => {
                Some(self.nanoseconds(one)?.cmp(&self.nanoseconds(other)?))
            }
        }
    }
}

pub const DAY_NANOS: i128 = DAY_MILLIS as i128 * 1_000_000;

impl<'a> Answer<'a> {
    /// The answer `value` to a question with these rules.
    pub fn new(value: &'a Value, rules: &dyn Rules) -> Self {
        Self { value, value_type: rules.value_type(), max_length: rules.max_length() }
    }

    /// The text to match against patterns; `None` if too long.
    pub(super) fn matchable(&self) -> Option<&str> {
        let Value::String(text) = self.value else { return None };
        let is_short = text.len() <= self.max_length || text.chars().count() <= self.max_length;
        is_short.then_some(text)
    }

    /// Compares the answer with `value`; `None` if the two have no order.
    pub(super) fn order(self, value: &Value) -> Option<Ordering> {
        match (self.value, &*self.coerce(value)) {
            (Value::Number(one), Value::Number(other)) => Some(one.order(other)),
            (Value::String(one), Value::String(other)) => self.value_type.order(one, other),
            _ => None,
        }
    }

    pub(super) fn equals(self, value: &Value) -> bool {
        self.order(value).map_or_else(|| *self.value == *self.coerce(value), Ordering::is_eq)
    }

    /// Converts `value` to the number or boolean that it spells, if it is text and this answer is untyped.
    fn coerce(self, value: &Value) -> Cow<'_, Value> {
        let is_scalar = |value: &Value| matches!(value, Value::Number(_) | Value::Bool(_));
        match value {
            Value::String(text) if self.value_type == ValueType::Untyped && is_scalar(self.value) => {
                json::parse(text).ok().filter(is_scalar).map_or(Cow::Borrowed(value), Cow::Owned)
            }
            _ => Cow::Borrowed(value),
        }
    }

    /// Whether a list contains the item `value`, or a text contains the text `value`.
    pub(super) fn includes(self, value: &Value) -> bool {
        match (self.value, value) {
            (Value::Array(items), value) => items.contains(value),
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            _ => false,
        }
    }
}
