//! Comparison of an answer with a value: numbers by value, dates and times chronologically, text by code point.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::domain::json::{self, Value};

/// How to interpret an answer that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    /// Plain text.
    Text,
    /// A date, `YYYY-MM-DD`, whose texts sort chronologically.
    Date,
    /// A time of day, `HH:MM` or `HH:MM:SS`.
    Time,
    /// A date and time in RFC 3339.
    DateTime,
    /// Plain text; the value compared with is typed text, which also stands for the number or boolean that it spells.
    Untyped,
}

/// Maximum bytes of a date and time: an answer may be compared very often.
pub const MAX_DATETIME_LENGTH: usize = 64;

/// A nonempty answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub value: &'a Value,
    pub value_type: ValueType,
    /// Maximum characters to match against patterns; a longer text matches none.
    pub max_length: usize,
}

impl ValueType {
    /// Returns the number or boolean that the text `value` spells, if untyped.
    pub(super) fn coerce(self, value: &Value) -> Option<Value> {
        let (Self::Untyped, Value::String(text)) = (self, value) else { return None };
        json::parse(text).ok().filter(|parsed| matches!(parsed, Value::Number(_) | Value::Bool(_)))
    }

    /// Compares two texts; `None` if either is not a valid value of this type.
    pub(super) fn order(self, one: &str, other: &str) -> Option<Ordering> {
        match self {
            Self::Text | Self::Untyped => Some(one.cmp(other)),
            Self::Date => {
                let is_date = |text: &str| has_form(text.as_bytes(), b"0000-00-00");
                (is_date(one) && is_date(other)).then(|| one.cmp(other))
            }
            Self::Time => Some(with_seconds(one)?.cmp(&with_seconds(other)?)),
            Self::DateTime => Some(parse_datetime(one)?.cmp(&parse_datetime(other)?)),
        }
    }
}

/// Returns a time of day with seconds.
fn with_seconds(text: &str) -> Option<[u8; 8]> {
    // An invalid answer may be very long, and compared very often.
    if text.len() > 8 {
        return None;
    }
    let (time, seconds) = text.as_bytes().split_at(text.len().min(5));
    let seconds = if seconds.is_empty() { b":00" } else { seconds };
    Some([time, seconds].concat()).filter(|whole| has_form(whole, b"00:00:00"))?.try_into().ok()
}

/// Whether `text` has a digit for each `0` in `form`, and otherwise equals it.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    let form_of = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    text.len() == form.len() && iter::zip(text, form).all(|(byte, form)| form_of(*byte) == *form)
}

fn parse_datetime(text: &str) -> Option<OffsetDateTime> {
    (text.len() <= MAX_DATETIME_LENGTH).then(|| OffsetDateTime::parse(text, &Rfc3339).ok())?
}

impl Answer<'_> {
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

    /// Converts `value` to the type of this answer, if it is untyped text.
    fn coerce(self, value: &Value) -> Cow<'_, Value> {
        match self.value {
            Value::Number(_) | Value::Bool(_) => self.value_type.coerce(value).map(Cow::Owned),
            _ => None,
        }
        .unwrap_or(Cow::Borrowed(value))
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
