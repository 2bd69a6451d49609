//! Parsing of JSON strings; one without escapes is copied once.

use crate::domain::json::parse::{Parser, SyntaxError};

impl<'a> Parser<'a> {
    /// Parses the string at the current position.
    pub(super) fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let plain = self.plain();
        if self.skip(b'"') { Ok(plain.to_owned()) } else { self.rest_of_string(plain) }
    }

    /// Parses the rest of a string after `prefix`, from the first escape or invalid character on.
    fn rest_of_string(&mut self, prefix: &str) -> Result<String, SyntaxError> {
        let mut text = prefix.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in text must be escaped")),
                None => return Err(self.error("the text ends inside quotes")),
            }
            text.push_str(self.plain());
        }
    }

    /// Skips and returns the characters up to a quote, an escape or a control character.
    fn plain(&mut self) -> &'a str {
        let from = self.at;
        let rest = &self.text.as_bytes()[from..];
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        self.at += rest.iter().position(is_special).unwrap_or(rest.len());
        &self.text[from..self.at]
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

    /// Reads the four hexadecimal digits after `\u`, and the second escape of a surrogate pair (RFC 8259 §7).
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
}
