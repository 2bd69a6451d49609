//! A single-pass parser from text to [`Value`].
//!
//! Most objects have few members: up to [`LINEAR_SEARCH_MEMBERS`], keys are compared one by one rather than hashed.

use std::collections::HashSet;
use std::ops::Range;

use crate::domain::json::{MAX_DEPTH, Number, Object, Value};

/// Members up to which a duplicate key is found by linear search.
const LINEAR_SEARCH_MEMBERS: usize = 16;

/// A JSON syntax error. Lines and columns count from 1; columns are in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct SyntaxError {
    pub what: String,
    pub line: usize,
    pub column: usize,
}

/// Parses `text` as one JSON value.
pub fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.space();
    let value = parser.value()?;
    parser.end()?;
    Ok(value)
}

/// Parses an object and returns each member with the range of its value: `text[range]` is the value exactly as
/// written.
pub fn parse_object(text: &str) -> Result<Vec<(String, Value, Range<usize>)>, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.space();
    if parser.peek() != Some(b'{') {
        return Err(parser.error("expected an object"));
    }
    let mut ranges = Vec::new();
    let members = parser.members(|range| ranges.push(range))?;
    parser.end()?;
    Ok(members.into_iter().zip(ranges).map(|((key, value), range)| (key, value, range)).collect())
}

/// The text and the current position in it.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn end(&mut self) -> Result<(), SyntaxError> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.error("expected the end")) }
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        match self.peek() {
            Some(b'{') => self.members(|_| ()).map(Value::Object),
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

    /// Parses the object at the current position; calls `on_value` with the range of each member's value.
    fn members(&mut self, mut on_value: impl FnMut(Range<usize>)) -> Result<Object, SyntaxError> {
        let mut members = Object::new();
        let mut keys = KeySet::default();
        self.enter()?;
        let mut more = !self.leave(b'}');
        while more {
            let key = self.key(&members, &mut keys)?;
            self.space();
            if !self.skip(b':') {
                return Err(self.error("expected `:`"));
            }
            self.space();
            let from = self.at;
            let value = self.value()?;
            on_value(from..self.at);
            members.push((key, value));
            more = self.more(b'}')?;
        }
        Ok(members)
    }

    /// Parses a key, and refuses one that `members` already has.
    fn key(&mut self, members: &Object, keys: &mut KeySet) -> Result<String, SyntaxError> {
        let from = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a member's name in quotes"));
        }
        let key = self.string()?;
        if keys.is_duplicate(members, &key) {
            return Err(self.error_at(from, &format!("the key `{key}` appears twice in one object")));
        }
        Ok(key)
    }

    fn array(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.enter()?;
        let mut more = !self.leave(b']');
        while more {
            items.push(self.value()?);
            more = self.more(b']')?;
        }
        Ok(Value::Array(items))
    }

    /// Skips `{` or `[` and the white space after it.
    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(&format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// Skips the closing bracket, if it is next.
    fn leave(&mut self, close: u8) -> bool {
        let left = self.skip(close);
        self.depth -= usize::from(left);
        left
    }

    /// Skips `,` (true) or the closing bracket (false).
    fn more(&mut self, close: u8) -> Result<bool, SyntaxError> {
        self.space();
        if self.skip(b',') {
            self.space();
            return Ok(true);
        }
        if self.leave(close) {
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
            self.required_digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _sign = self.skip(b'+') || self.skip(b'-');
            self.required_digits()?;
        }
        let text = &self.text[from..self.at];
        let value: f64 = text.parse().expect("a JSON number is a Rust number");
        if !value.is_finite() {
            self.at = from;
            return Err(self.error("the number is out of range"));
        }
        Ok(Value::Number(Number { text: text.into(), value: if value == 0.0 { 0.0 } else { value } }))
    }

    fn required_digits(&mut self) -> Result<(), SyntaxError> {
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

    fn word(&mut self, word: &str, value: Value) -> Result<Value, SyntaxError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    pub(super) fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn error(&self, what: &str) -> SyntaxError {
        self.error_at(self.at, what)
    }

    pub(super) fn error_at(&self, at: usize, what: &str) -> SyntaxError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        SyntaxError { what: what.to_owned(), line, column }
    }
}

/// The keys of an object with more than [`LINEAR_SEARCH_MEMBERS`] members.
#[derive(Default)]
struct KeySet(Option<HashSet<String>>);

impl KeySet {
    /// Whether `members` already has `key`. To be called for every key in order: it collects them.
    fn is_duplicate(&mut self, members: &Object, key: &str) -> bool {
        if members.len() < LINEAR_SEARCH_MEMBERS {
            return members.iter().any(|(name, _)| name == key);
        }
        let keys = || members.iter().map(|(name, _)| name.clone()).collect();
        !self.0.get_or_insert_with(keys).insert(key.to_owned())
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
    fn ambiguous_json_is_refused() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        let refused = [
            (r#"{"q1":1,"q1":2}"#, "the key `q1` appears twice in one object at line 1, column 9"),
            (r#"{"a":{"x":1,"\u0078":2}}"#, "the key `x` appears twice in one object at line 1, column 13"),
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
    fn a_duplicate_key_is_found_among_many() {
        let members = |keys: &[usize]| {
            let members: Vec<_> = keys.iter().map(|key| format!("\"k{key}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        let mut keys: Vec<usize> = (0..40).collect();
        assert!(parse(&members(&keys)).is_ok());
        for (first, second) in [(0, 39), (15, 16), (16, 17), (30, 39)] {
            keys[second] = first;
            let error = parse(&members(&keys)).unwrap_err();
            assert_eq!(error.what, format!("the key `k{first}` appears twice in one object"));
            keys[second] = second;
        }
    }

    #[test]
    fn it_agrees_with_serde_json() {
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
                (Err(error), _) if error.what.contains("appears twice") => {}
                (Err(_), Err(_)) => {}
                _ => panic!("{text}: {ours:?} {common:?}"),
            }
        }
        assert!(accepted > 1_000, "{accepted}");
    }

    #[test]
    fn ranges_give_values_as_written() {
        let text = " {\"a\": 1.10 , \"b\" : [ 1 ] }";
        let members = parse_object(text).unwrap();
        let cut: Vec<_> =
            members.iter().map(|(key, _, range)| (key.as_str(), &text[range.clone()])).collect();
        assert_eq!(cut, [("a", "1.10"), ("b", "[ 1 ]")]);
        assert!(parse_object("[]").is_err());
    }
}
