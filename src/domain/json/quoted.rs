//! Text in quotes: plain for the most part, so it is looked at eight bytes at a time, and copied once if it has no
//! escape.

use super::parse::{Parser, SyntaxError};

impl<'a> Parser<'a> {
    /// The text whose opening quote is here.
    pub(super) fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let plain = self.plain();
        if self.skip(b'"') { Ok(plain.to_owned()) } else { self.rest_of_string(plain) }
    }

    /// Text in quotes of which `begun` is read, up to an escape or something wrong.
    fn rest_of_string(&mut self, begun: &str) -> Result<String, SyntaxError> {
        let mut text = begun.to_owned();
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

    /// Steps over the characters that stand for themselves.
    fn plain(&mut self) -> &'a str {
        let from = self.at;
        self.at += plain_length(&self.text.as_bytes()[from..]);
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
}

/// How many bytes at the start of `bytes` stand for themselves in quotes: all before a quote, a backslash or a control
/// character.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        if let Some(first) = first_special(u64::from_le_bytes(*word)) {
            return index * size_of::<u64>() + first;
        }
    }
    let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
    bytes.len() - rest.len() + plain
}

/// Which of eight bytes, the lowest first, is the first that does not stand for itself.
///
/// Subtracting from all bytes at once sets the highest bit of those that are too small. It also borrows from the byte
/// above, but that one comes later.
fn first_special(word: u64) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let below = |bytes: u64, bound: u64| bytes.wrapping_sub(EACH * bound) & !bytes;
    let equal = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let special = (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (EACH * 0x80);
    (special != 0).then_some(special.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::plain_length;

    #[test]
    fn plain_text_ends_at_the_first_quote_backslash_or_control_character() {
        for special in [b'"', b'\\', 0, 1, b'\n', 0x1f] {
            for plain in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                for length in 0..20 {
                    let mut bytes = [plain; 20];
                    assert_eq!(plain_length(&bytes[..length]), length, "{plain:#x}");
                    // What comes behind it changes nothing, above all where a subtraction borrows.
                    bytes[length] = special;
                    assert_eq!(plain_length(&bytes), length, "{special:#x} after {plain:#x}");
                }
            }
        }
    }
}
