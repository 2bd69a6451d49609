//! Strict, lossless JSON: members keep their order, numbers keep their text.
//!
//! Common parsers keep the last of two equal keys and turn 2^64 into a float; two parsers of the same bytes then
//! disagree. Here duplicate keys, NUL characters, numbers outside the finite range of `f64` and nesting deeper
//! than [`MAX_DEPTH`] are refused, with line and column.

mod decimal;
mod merge;
mod parse;

use std::cmp::Ordering;
use std::fmt;

use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

pub use decimal::{Decimal, Steps};
pub use merge::merge;
pub use parse::{SyntaxError, parse, parse_object};

/// Maximum nesting depth of arrays and objects.
pub const MAX_DEPTH: usize = 16;

/// A JSON value (RFC 8259).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Object),
}

/// The members of an object in the order written; no key occurs twice.
pub type Object = Vec<(String, Value)>;

/// A number as it was written, with its value as the nearest `f64`, always finite.
#[derive(Debug, Clone)]
pub struct Number {
    text: Box<str>,
    value: f64,
}

impl Number {
    /// The nearest `f64`; `-0` is 0.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The value, if it is a whole number that `i64` and `f64` represent exactly: `5`, `5.0` and `5e0` are 5. The text
    /// decides: `4.99999999999999999999` rounds to 5 as an `f64`, but is not a whole number.
    pub fn integer(&self) -> Option<i64> {
        let whole = self.value.fract() == 0.0 && self.value.abs() <= 9_007_199_254_740_992.0;
        let written_whole = || !self.text.contains(['.', 'e', 'E']) || self.exact().is_integer();
        (whole && written_whole()).then_some(self.value as i64)
    }

    pub fn exact(&self) -> Decimal {
        Decimal::parse(&self.text)
    }

    /// Compares by exact value. The texts decide where the nearest `f64` are equal.
    pub fn order(&self, other: &Self) -> Ordering {
        let nearest = self.value.total_cmp(&other.value);
        if nearest.is_ne() || self.text == other.text {
            return nearest;
        }
        self.exact().cmp(&other.exact())
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self { text: value.to_string().into(), value: value as f64 }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

/// Compares by value: `5.0` equals `5`.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

// Never NaN, so equality is reflexive.
impl Eq for Number {}

impl Value {
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let Self::Object(members) = self else { return None };
        members.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Sets the member at the path `names` of this object. What is on the way becomes an object.
    pub fn set(&mut self, names: &[&str], value: Value) {
        let [name, rest @ ..] = names else {
            *self = value;
            return;
        };
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Object::new());
        }
        if let Self::Object(members) = self
            && members.iter().all(|(known, _)| known != name)
        {
            members.push(((*name).to_owned(), Self::Null));
        }
        if let Some(member) = self.get_mut(name) {
            member.set(rest, value);
        }
    }

    /// Removes the member at the path `names` of this object, if there is one.
    pub fn remove(&mut self, names: &[&str]) {
        match (names, &mut *self) {
            ([name], Self::Object(members)) => members.retain(|(known, _)| known != name),
            ([name, rest @ ..], _) => {
                if let Some(member) = self.get_mut(name) {
                    member.remove(rest);
                }
            }
            ([], _) => {}
        }
    }

    /// The value that the JSON pointer `pointer` (RFC 6901) leads to.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        pointer.split('/').skip(1).try_fold(self, |value, step| match value {
            Self::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => value.get(&unescape(step)),
        })
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(flag) = self { Some(*flag) } else { None }
    }

    pub fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The JSON type, as error messages name it: `a number`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "text",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// The value as shown within a sentence: text without quotes, unless it contains spaces or punctuation that would
    /// make it ambiguous.
    pub fn display_text(&self) -> String {
        let is_ambiguous =
            |found: char| found.is_whitespace() || found.is_control() || ",\"()".contains(found);
        match self {
            Self::String(text) if !text.is_empty() && !text.contains(is_ambiguous) => text.clone(),
            value => value.to_string(),
        }
    }
}

/// Returns `text` as JSON, in quotes.
pub fn to_text(text: &str) -> String {
    serde_json::to_string(text).expect("text can be written as JSON")
}

/// Unescapes `step`, one reference token of a JSON pointer (RFC 6901 §4).
pub fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Appends the member or item `key` to `pointer`; `~` and `/` are escaped (RFC 6901 §3).
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => RawValue::from_string(number.text.to_string())
                .map_err(S::Error::custom)?
                .serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_unfit| fmt::Error)?)
    }
}
