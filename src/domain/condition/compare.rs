//! How an answer compares with a value: numbers by value, dates and times in time, text by code point.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::domain::json::{self, Value};

/// What the texts of an answer stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    /// Themselves.
    Text,
    /// Dates, `YYYY-MM-DD`, whose texts sort as they do.
    Date,
    /// Times of day, `HH:MM` or `HH:MM:SS`.
    Time,
    /// Moments, in RFC 3339.
    DateTime,
    /// Themselves, where the value was typed for answers of any kind: it is the number or the boolean too that it is
    /// written as.
    Untyped,
}

/// Bytes that a moment may have as it is written: an answer may be compared very often.
pub const MAX_DATETIME_LENGTH: usize = 64;

/// An answer that counts as one: it is not empty.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub value: &'a Value,
    pub value_type: ValueType,
    /// Characters up to which it is held against patterns: no longer text matches any.
    pub max_length: usize,
}

impl ValueType {
    /// The number or the boolean that `value` stands for besides itself.
    pub(super) fn coerce(self, value: &Value) -> Option<Value> {
        let (Self::Untyped, Value::String(text)) = (self, value) else { return None };
        json::parse(text).ok().filter(|parsed| matches!(parsed, Value::Number(_) | Value::Bool(_)))
    }

    /// Which of two texts comes first; `None` if either is not a valid value of this type.
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

/// A time of day with its seconds.
fn with_seconds(text: &str) -> Option<[u8; 8]> {
    // An answer that is refused may be very long, and compared very often.
    if text.len() > 8 {
        return None;
    }
    let (time, seconds) = text.as_bytes().split_at(text.len().min(5));
    let seconds = if seconds.is_empty() { b":00" } else { seconds };
    Some([time, seconds].concat()).filter(|whole| has_form(whole, b"00:00:00"))?.try_into().ok()
}

/// Whether `text` has a digit for each `0` of `form`, and else the same.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    let form_of = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    text.len() == form.len() && iter::zip(text, form).all(|(byte, form)| form_of(*byte) == *form)
}

fn parse_datetime(text: &str) -> Option<OffsetDateTime> {
    (text.len() <= MAX_DATETIME_LENGTH).then(|| OffsetDateTime::parse(text, &Rfc3339).ok())?
}

impl Answer<'_> {
    /// The text that patterns are held against.
    pub(super) fn matchable(&self) -> Option<&str> {
        let Value::String(text) = self.value else { return None };
        let is_short = text.len() <= self.max_length || text.chars().count() <= self.max_length;
        is_short.then_some(text)
    }

    /// Whether it lies below, at or above `value`; `None` if the two have no order.
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

    /// What `value` stands for beside this answer.
    fn coerce(self, value: &Value) -> Cow<'_, Value> {
        match self.value {
            Value::Number(_) | Value::Bool(_) => self.value_type.coerce(value).map(Cow::Owned),
            _ => None,
        }
        .unwrap_or(Cow::Borrowed(value))
    }

    /// Whether a list has the option `value`, a text the text.
    pub(super) fn includes(self, value: &Value) -> bool {
        match (self.value, value) {
            (Value::Array(items), value) => items.contains(value),
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            _ => false,
        }
    }
}
