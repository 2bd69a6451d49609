//! How an answer compares with a value: numbers by value, dates and times in time, text by code point.

use std::borrow::Cow;
use std::cmp::Ordering;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::domain::json::{self, Value};

/// What the texts of an answer stand for. Dates need no sense of their own: their texts sort as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sense {
    /// Themselves.
    Text,
    /// Times of day, `HH:MM` or `HH:MM:SS`.
    Time,
    /// Moments, in RFC 3339.
    Moment,
    /// Themselves, where the value was typed for answers of any kind: it is the number or the boolean too that it is
    /// written as.
    Typed,
}

/// An answer that counts as one: it is not empty.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub value: &'a Value,
    pub sense: Sense,
}

impl Sense {
    /// The number or the boolean that `value` stands for besides itself.
    pub(super) fn meant(self, value: &Value) -> Option<Value> {
        let (Self::Typed, Value::String(text)) = (self, value) else { return None };
        json::parse(text).ok().filter(|meant| matches!(meant, Value::Number(_) | Value::Bool(_)))
    }

    /// Which of two texts comes first; `None` if one has none in this sense.
    pub(super) fn order(self, one: &str, other: &str) -> Option<Ordering> {
        match self {
            Self::Text | Self::Typed => Some(one.cmp(other)),
            Self::Time => Some(with_seconds(one)?.cmp(&with_seconds(other)?)),
            Self::Moment => Some(moment(one)?.cmp(&moment(other)?)),
        }
    }
}

/// A time of day with its seconds.
pub(super) fn with_seconds(text: &str) -> Option<[u8; 8]> {
    match text.len() {
        5 => [text.as_bytes(), b":00"].concat().try_into().ok(),
        _ => text.as_bytes().try_into().ok(),
    }
}

pub(super) fn moment(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

impl Answer<'_> {
    /// Whether it lies below, at or above `value`; `None` if the two have no order.
    pub(super) fn order(self, value: &Value) -> Option<Ordering> {
        match (self.value, &*self.meant(value)) {
            (Value::Number(one), Value::Number(other)) => Some(one.order(other)),
            (Value::String(one), Value::String(other)) => self.sense.order(one, other),
            _ => None,
        }
    }

    pub(super) fn equals(self, value: &Value) -> bool {
        self.order(value).map_or_else(|| *self.value == *self.meant(value), Ordering::is_eq)
    }

    /// What `value` stands for beside this answer.
    fn meant(self, value: &Value) -> Cow<'_, Value> {
        match self.value {
            Value::Number(_) | Value::Bool(_) => self.sense.meant(value).map(Cow::Owned),
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
