//! The cells of a workbook: their types, and what a text must not have.

use rust_xlsxwriter::{Format, Worksheet, XlsxError};

use crate::cli::output::table::Cell;

/// Maximum length of a text in a cell, in UTF-16 units.
const MAX_TEXT: usize = 32_767;

/// Largest number of digits of an integer that Excel shows; it replaces the others by zeros.
const MAX_DIGITS: usize = 15;

/// Largest magnitude of a number, according to the specification of Excel.
const MAX_NUMBER: f64 = 9.999_999_999_999_99e307;

/// Maximum size of the XML of a cell without its text, and of one run of a text.
const MAX_TAG_BYTES: usize = 200;

/// The content of a cell.
#[derive(Debug)]
pub enum Content {
    Empty,
    Boolean(bool),
    Number(f64),
    /// A text as it is written, and whether it was cut.
    Text(String, bool),
}

impl Content {
    /// Returns the content of `cell`. Text that a spreadsheet would run as a formula gets a leading `'`, unless `raw`.
    pub fn new(cell: &Cell, raw: bool) -> Self {
        let text = cell.export_text(raw);
        match &*text {
            "" => Self::Empty,
            "true" | "false" if !cell.is_text() => Self::Boolean(text == "true"),
            text => match number(text).filter(|_| !cell.is_text()) {
                Some(number) => Self::Number(number),
                None => {
                    let text = printable(text);
                    cut(&text).map_or(Self::Text(text, false), |cut| Self::Text(cut, true))
                }
            },
        }
    }

    /// Whether it is a text that was cut.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Text(_, true))
    }

    /// Returns an upper bound of the size of its XML.
    pub fn max_xml_bytes(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Boolean(_) => MAX_TAG_BYTES,
            // The crate writes numbers without an exponent.
            Self::Number(number) => MAX_TAG_BYTES + number.to_string().len(),
            Self::Text(text, _) => {
                let escaped = text.bytes().filter(|byte| matches!(byte, b'&' | b'<' | b'>')).count();
                text.len() + "amp;".len() * escaped + MAX_TAG_BYTES * runs(text).len()
            }
        }
    }

    /// Writes it to a cell of `sheet`.
    pub fn write(&self, sheet: &mut Worksheet, row: u32, column: u16) -> Result<(), XlsxError> {
        match self {
            Self::Empty => Ok(()),
            Self::Boolean(value) => sheet.write_boolean(row, column, *value).map(drop),
            Self::Number(number) => sheet.write_number(row, column, *number).map(drop),
            Self::Text(text, _) => write_text(sheet, row, column, text),
        }
    }
}

/// Writes a text.
///
/// Excel decodes `_x0041_` to `A`, for which the crate escapes the first `_`. Other programs, such as openpyxl, do not decode
/// it: a text with that form is split into runs, which all programs show as it is. The crate limits the XML of runs to
/// [`MAX_TEXT`].
fn write_text(sheet: &mut Worksheet, row: u32, column: u16, text: &str) -> Result<(), XlsxError> {
    let runs = runs(text);
    if runs.len() > 1 {
        let format = Format::default();
        let formatted: Vec<_> = runs.into_iter().map(|run| (&format, run)).collect();
        match sheet.write_rich_string(row, column, &formatted) {
            Err(XlsxError::MaxStringLengthExceeded) => {}
            written => return written.map(drop),
        }
    }
    sheet.write_string(row, column, text).map(drop)
}

/// Splits `text` after each `_` that begins an escaped character, such as `_x0041_` (ECMA-376 Part 1 §22.9.2.19).
fn runs(text: &str) -> Vec<&str> {
    let is_escape = |rest: &str| {
        let code = rest.as_bytes().strip_prefix(b"_x").and_then(|rest| rest.split_at_checked(4));
        code.is_some_and(|(code, rest)| code.iter().all(u8::is_ascii_hexdigit) && rest.starts_with(b"_"))
    };
    let mut runs = Vec::new();
    let mut start = 0;
    for (index, _) in text.match_indices("_x") {
        if is_escape(&text[index..]) {
            runs.push(&text[start..=index]);
            start = index + 1;
        }
    }
    runs.push(&text[start..]);
    runs
}

/// Returns the number `text`, which is in the syntax of JSON, if Excel shows it with all its digits.
fn number(text: &str) -> Option<f64> {
    let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_long = is_integer && text.trim_start_matches('-').len() > MAX_DIGITS;
    text.parse::<f64>().ok().filter(|number| !is_long && number.abs() <= MAX_NUMBER)
}

/// Returns `text` without what the crate would write as `_x000D_`, which openpyxl does not decode: carriage returns and
/// characters that XML does not allow (XML 1.0 §2.2).
fn printable(text: &str) -> String {
    let replaced = |character| match character {
        '\r' => '\n',
        '\t' | '\n' => character,
        '\0'..' ' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ => character,
    };
    text.replace("\r\n", "\n").chars().map(replaced).collect()
}

/// Returns the beginning of a text that is too long for a cell, with an ellipsis.
fn cut(text: &str) -> Option<String> {
    if text.len() <= MAX_TEXT {
        return None;
    }
    let mut units = 0;
    let mut end = 0;
    for (index, character) in text.char_indices() {
        units += character.len_utf16();
        if units > MAX_TEXT {
            return Some(format!("{}…", &text[..end]));
        }
        if units < MAX_TEXT {
            end = index + character.len_utf8();
        }
    }
    None
}
