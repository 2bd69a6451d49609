//! Strict JSON that forgets nothing: members keep their order, numbers keep their text.
//!
//! Common parsers keep the last of two equal keys and turn 2^64 into a float; two readers of the same bytes then
//! disagree. Here duplicate keys, NUL characters, numbers outside the finite range of `f64` and nesting deeper
//! than [`MAX_DEPTH`] are refused, with line and column.

use std::fmt;

use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 16;

/// A JSON value (RFC 8259).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
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

    /// The value if it is a whole number that `i64` and `f64` hold exactly: `5`, `5.0` and `5e0` are 5. The text decides:
    /// `4.99999999999999999999` rounds to 5 as an `f64` and is none.
    pub fn integer(&self) -> Option<i64> {
        let whole = self.value.fract() == 0.0 && self.value.abs() <= 9_007_199_254_740_992.0;
        let rounded = whole.then_some(self.value as i64)?;
        let written = self.text.contains(['.', 'e', 'E']).then(|| exact_digits(&self.text));
        match written {
            Some(digits) if digits != exact_digits(&rounded.to_string()) => None,
            Some(_) | None => Some(rounded),
        }
    }

    /// The number's own text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The digits of a number without zeros at either end, and the power of ten of the last one: the same for every way to
/// write the same value.
fn exact_digits(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let kept = digits.trim_end_matches('0');
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX);
    let power =
        exponent.saturating_sub(fraction.len() as i64).saturating_add((digits.len() - kept.len()) as i64);
    let kept = kept.trim_start_matches('0').to_owned();
    if kept.is_empty() { (kept, 0) } else { (kept, power) }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self { text: value.to_string().into(), value: value as f64 }
    }
}

/// By value: `5.0` equals `5`.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Value {
    /// The member `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// The kind of value, as an error message names it.
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

/// Why a text is no JSON, and where: lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct SyntaxError {
    pub what: String,
    pub line: usize,
    pub column: usize,
}

/// Reads one JSON value that takes up all of `text`.
pub fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.only_value()?;
    Ok(value)
}

/// Reads an object and keeps, for each member, where its value stands in `text`: `text[range]` is the value exactly
/// as it was written.
pub fn parse_object(text: &str) -> Result<Vec<(String, Value, std::ops::Range<usize>)>, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.space();
    if parser.peek() != Some(b'{') {
        return Err(parser.error("expected an object"));
    }
    let members = parser.members()?;
    parser.end()?;
    Ok(members)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn only_value(&mut self) -> Result<Value, SyntaxError> {
        self.space();
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.error("expected the end")) }
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        match self.peek() {
            Some(b'{') => {
                let members = self.members()?;
                Ok(Value::Object(members.into_iter().map(|(key, value, _)| (key, value)).collect()))
            }
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.error("expected a value")),
            None => Err(self.error("the text ends where a value is expected")),
        }
    }

    fn members(&mut self) -> Result<Vec<(String, Value, std::ops::Range<usize>)>, SyntaxError> {
        let mut members: Vec<(String, Value, std::ops::Range<usize>)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        self.enter()?;
        if self.skip(b'}') {
            self.depth -= 1;
            return Ok(members);
        }
        loop {
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a member's name in quotes"));
            }
            let key = self.string()?;
            // A set only where comparing with each would be slow; small objects are the rule.
            let twice = if members.len() < 16 {
                members.iter().any(|(name, ..)| *name == key)
            } else {
                if seen.is_empty() {
                    seen.extend(members.iter().map(|(name, ..)| name.clone()));
                }
                !seen.insert(key.clone())
            };
            if twice {
                self.at = key_at;
                return Err(self.error(&format!("the key `{key}` stands twice in one object")));
            }
            self.expect(b':', "expected `:`")?;
            self.space();
            let from = self.at;
            let value = self.value()?;
            members.push((key, value, from..self.at));
            if !self.more(b'}')? {
                return Ok(members);
            }
        }
    }

    fn array(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.enter()?;
        if self.skip(b']') {
            self.depth -= 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.more(b']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// Steps over `{` or `[` and the space behind it.
    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(&format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// Steps over `,` (true) or the closing bracket (false).
    fn more(&mut self, close: u8) -> Result<bool, SyntaxError> {
        self.space();
        if self.skip(b',') {
            self.space();
            return Ok(true);
        }
        if self.skip(close) {
            self.depth -= 1;
            return Ok(false);
        }
        Err(self.error(&format!("expected `,` or `{}`", char::from(close))))
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let from = self.at;
        self.skip(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.error("expected a digit")),
        }
        if self.skip(b'.') {
            self.some_digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _sign = self.skip(b'+') || self.skip(b'-');
            self.some_digits()?;
        }
        let text = &self.text[from..self.at];
        let value: f64 = text.parse().expect("a JSON number is a Rust number");
        if !value.is_finite() {
            self.at = from;
            return Err(self.error("the number is out of range"));
        }
        Ok(Value::Number(Number { text: text.into(), value: if value == 0.0 { 0.0 } else { value } }))
    }

    fn some_digits(&mut self) -> Result<(), SyntaxError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error("expected a digit"));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain =
                rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
            text.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in text must be escaped")),
                None => return Err(self.error("the text ends inside quotes")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let from = self.at;
        self.at += 2;
        let escaped = match self.text.as_bytes().get(from + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => match self.unicode() {
                Some('\0') => return Err(self.error_at(from, "NUL characters are not accepted")),
                Some(character) => character,
                None => return Err(self.error_at(from, "no character has this escape")),
            },
            _ => return Err(self.error_at(from, "unknown escape")),
        };
        Ok(escaped)
    }

    /// The character of `\uXXXX`, or of a surrogate pair, whose digits begin here.
    fn unicode(&mut self) -> Option<char> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if !(self.skip(b'\\') && self.skip(b'u')) {
            return None;
        }
        let low = self.hex().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, SyntaxError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), SyntaxError> {
        self.space();
        if self.skip(byte) { Ok(()) } else { Err(self.error(what)) }
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, what: &str) -> SyntaxError {
        self.error_at(self.at, what)
    }

    fn error_at(&self, at: usize, what: &str) -> SyntaxError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        SyntaxError { what: what.to_owned(), line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, Value, parse, parse_object};

    #[test]
    fn values_keep_order_and_number_text() {
        let text = r#"{"b":[1.10,18446744073709551616,-0],"a":{"z":null,"y":true},"t":"é\n\"\\/"}"#;
        let written = r#"{"b":[1.10,18446744073709551616,-0],"a":{"z":null,"y":true},"t":"é\n\"\\/"}"#;
        assert_eq!(parse(text).unwrap().to_string(), written);
        assert_eq!(parse(r#""\ud83d\ude00\u00e9""#).unwrap(), Value::String("😀é".into()));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        let refused = [
            (r#"{"q1":1,"q1":2}"#, "the key `q1` stands twice in one object at line 1, column 9"),
            (r#"{"a":{"x":1,"\u0078":2}}"#, "the key `x` stands twice in one object at line 1, column 13"),
            (r#""a\u0000""#, "NUL characters are not accepted at line 1, column 3"),
            ("[\n 1e999]", "the number is out of range at line 2, column 2"),
            (&deep, "more than 16 levels of nesting at line 1, column 17"),
            (r#""\ud800""#, "no character has this escape at line 1, column 2"),
            ("{\"a\":1,}", "expected a member's name in quotes at line 1, column 8"),
            ("[1 2]", "expected `,` or `]` at line 1, column 4"),
            ("01", "expected the end at line 1, column 2"),
            ("", "the text ends where a value is expected at line 1, column 1"),
            ("nul", "expected a value at line 1, column 1"),
            ("\"\n\"", "a control character in text must be escaped at line 1, column 2"),
        ];
        for (text, error) in refused {
            assert_eq!(parse(text).unwrap_err().to_string(), error, "{text}");
        }
        let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(parse(&deepest).is_ok());
    }

    #[test]
    fn what_it_accepts_and_refuses_agrees_with_a_common_parser() {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"b\\u00e9\"",
            "1",
            "-2.5e3",
            "true",
            "null",
            " ",
            "0",
            "\"\\\\\"",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut accepted = 0;
        for _ in 0..200_000 {
            let mut text = String::new();
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            for _ in 0..=(state >> 60) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            let ours = parse(&text);
            let common: Result<serde_json::Value, _> = serde_json::from_str(&text);
            match (&ours, &common) {
                (Ok(ours), Ok(_)) => {
                    accepted += 1;
                    let again: serde_json::Value = serde_json::from_str(&ours.to_string()).unwrap();
                    assert_eq!(common.unwrap(), again, "{text}");
                }
                (Err(error), _) if error.what.contains("stands twice") => {}
                (Err(_), Err(_)) => {}
                _ => panic!("{text}: {ours:?} {common:?}"),
            }
        }
        assert!(accepted > 1_000, "{accepted}");
    }

    #[test]
    fn an_objects_values_can_be_cut_out_as_written() {
        let text = " {\"a\": 1.10 , \"b\" : [ 1 ] }";
        let members = parse_object(text).unwrap();
        let cut: Vec<_> =
            members.iter().map(|(key, _, range)| (key.as_str(), &text[range.clone()])).collect();
        assert_eq!(cut, [("a", "1.10"), ("b", "[ 1 ]")]);
        assert!(parse_object("[]").is_err());
    }
}
