//! A single-pass parser from text to [`Value`].

use std::collections::HashSet;
use std::ops::Range;

use crate::domain::json::{MAX_DEPTH, Number, Value};

/// A JSON syntax error. Lines and columns count from 1; columns are in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line}, column {column}")]
pub struct SyntaxError {
    pub message: String,
    pub line: usize,
    pub column: usize,
}

pub fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.space();
    let value = parser.value()?;
    parser.end()?;
    Ok(value)
}

/// The members of an object, each with the range of its value: `text[range]` is the value exactly as written.
type MemberRanges = Vec<(String, Value, Range<usize>)>;

/// Parses an object and returns each member with the range of its value.
pub fn parse_object(text: &str) -> Result<MemberRanges, SyntaxError> {
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

    fn members(&mut self) -> Result<MemberRanges, SyntaxError> {
        let (mut members, mut keys) = (MemberRanges::new(), HashSet::new());
        self.items(b'}', |parser| {
            let key_start = parser.at;
            if parser.peek() != Some(b'"') {
                return Err(parser.error("expected a member's name in quotes"));
            }
            let key = parser.string()?;
            // Comparing the keys of a short object is faster than hashing them; long ones would take quadratic time.
            let is_duplicate = if members.len() < 16 {
                members.iter().any(|(known, ..)| *known == key)
            } else {
                if keys.is_empty() {
                    keys.extend(members.iter().map(|(known, ..)| known.clone()));
                }
                !keys.insert(key.clone())
            };
            if is_duplicate {
                let message = format!("the key `{key}` appears twice in one object");
                return Err(parser.error_at(key_start, &message));
            }
            parser.space();
            if !parser.skip(b':') {
                return Err(parser.error("expected `:`"));
            }
            parser.space();
            let from = parser.at;
            let value = parser.value()?;
            members.push((key, value, from..parser.at));
            Ok(())
        })?;
        Ok(members)
    }

    fn array(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.items(b']', |parser| {
            items.push(parser.value()?);
            Ok(())
        })?;
        Ok(Value::Array(items))
    }

    /// Parses items with `item`, separated by commas, from the opening bracket up to the bracket `close`.
    fn items(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(&format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.at += 1;
        self.space();
        let mut has_more = !self.skip(close);
        while has_more {
            item(self)?;
            self.space();
            has_more = self.skip(b',');
            if has_more {
                self.space();
            } else if !self.skip(close) {
                return Err(self.error(&format!("expected `,` or `{}`", char::from(close))));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let (from, mut has_escapes) = (self.at, false);
        self.at += 1;
        while self.peek() != Some(b'"') {
            match self.peek() {
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 2;
                }
                Some(0..=0x1f) => return Err(self.error("a control character in text must be escaped")),
                Some(_) => self.at += 1,
                None => return Err(self.error("a string is not closed")),
            }
        }
        self.at += 1;
        let quoted = &self.text[from..self.at];
        if !has_escapes {
            return Ok(quoted[1..quoted.len() - 1].to_owned());
        }
        let text: String = serde_json::from_str(quoted)
            .map_err(|_invalid| self.error_at(from, "this text has an invalid escape"))?;
        if text.contains('\0') {
            return Err(self.error_at(from, "NUL characters are not accepted"));
        }
        Ok(text)
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let from = self.at;
        self.skip(b'-');
        // No digit follows a leading zero.
        if !self.skip(b'0') {
            self.digits()?;
        }
        if self.skip(b'.') {
            self.digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _sign = self.skip(b'+') || self.skip(b'-');
            self.digits()?;
        }
        let text = &self.text[from..self.at];
        let value: f64 = text.parse().expect("a JSON number is a Rust number");
        if !value.is_finite() {
            return Err(self.error_at(from, "the number is out of range"));
        }
        Ok(Value::Number(Number { text: text.into(), value: if value == 0.0 { 0.0 } else { value } }))
    }

    /// Skips digits, at least one.
    fn digits(&mut self) -> Result<(), SyntaxError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error("expected a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, SyntaxError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
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

    fn error(&self, message: &str) -> SyntaxError {
        self.error_at(self.at, message)
    }

    fn error_at(&self, at: usize, message: &str) -> SyntaxError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        SyntaxError { message: message.to_owned(), line, column }
    }
}
