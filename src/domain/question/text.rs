//! `short_text` and `long_text`: one line of text, or several lines.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::pattern::ecma262::translate;
use crate::domain::pattern::{Anchor, Pattern};
use crate::domain::question::control::{Control, Line, LineKind};
use crate::domain::question::json::{object, patterns};
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::{Fields, forbidden_message, is_forbidden};
use crate::domain::validation::limits::MAX_MATCHED;
use crate::domain::validation::violation::Rule;

/// Rules of `short_text` and `long_text`: bounded length, and optionally a pattern.
#[derive(Debug, Clone)]
pub(super) struct Text {
    lines: Lines,
    min_length: usize,
    max_length: usize,
    pattern: Option<Pattern>,
    pattern_message: Option<String>,
    placeholder: Option<String>,
}

/// Pattern of texts that are not blank, for JSON Schema, whose `\s` is a different set of white space.
pub(super) const NOT_BLANK: &str =
    r"[^\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    One,
    Many,
}

impl Lines {
    fn allow(self, character: char) -> bool {
        !is_forbidden(character) && (self == Self::Many || !breaks_line(character))
    }

    /// The pattern of allowed texts, for JSON Schema.
    pub(super) fn expression(self) -> &'static str {
        match self {
            Self::One => r"^[^\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]*$(?!\n)",
            Self::Many => r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$(?!\n)",
        }
    }
}

impl Text {
    pub(super) fn read(fields: &mut Fields<'_, '_>, lines: Lines, budget: &mut Budget) -> Self {
        let longest = 64 * 1024;
        let min = fields.count("min_length", 0..=longest).unwrap_or(0);
        let max = fields.count("max_length", 1..=longest);
        let pattern = fields.text("pattern", 1_000).and_then(|text| {
            let report = |(rule, message)| fields.refuse("pattern", rule, message).clone();
            budget.compile("pattern", &text, Anchor::Both).map_err(|error| error.map(report)).ok()
        });
        let max = max.unwrap_or(match lines {
            _ if pattern.is_some() => MAX_MATCHED,
            Lines::One => 1_000,
            Lines::Many => 20_000,
        });
        let pattern_message = fields.text("pattern_message", 300);
        let placeholder = fields.text("placeholder", 300);
        let text = Self { lines, min_length: min, max_length: max, pattern, pattern_message, placeholder };
        let matched = budget.limits.matched;
        if text.pattern.is_some() && max > matched {
            let message = format!("with a `pattern`, `max_length` must be at most {matched}, not {max}");
            fields.refuse("max_length", Rule::InvalidRange, message);
        }
        if min > max {
            let message = format!("`min_length` ({min}) must not be above `max_length` ({max})");
            fields.refuse("min_length", Rule::InvalidRange, message);
        }
        text
    }
}

impl Rules for Text {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<AnswerError> {
        let Value::String(text) = answer else { return vec![AnswerError::wrong_type("text", answer)] };
        let mut errors: Vec<_> = forbidden(text, self.lines).into_iter().collect();
        let length = text.chars().count();
        let (min, max) = (self.min_length, self.max_length);
        if length < min {
            let message = format!("Enter at least {min} characters, not {length}");
            errors.push(AnswerError::new(Rule::TooShort, message));
        }
        if length > max {
            let message = format!("Enter at most {max} characters, not {length}");
            errors.push(AnswerError::new(Rule::TooLong, message));
        }
        // Matching takes time proportional to the length of the text.
        let pattern = self.pattern.as_ref().filter(|_| length <= max.max(MAX_MATCHED));
        if let Some(pattern) = pattern.filter(|pattern| !pattern.matches(text)) {
            let own = self.pattern_message.clone();
            let message = own.unwrap_or_else(|| format!("Enter text that matches {}", pattern.text));
            errors.push(AnswerError::new(Rule::PatternMismatch, message));
        }
        errors
    }

    fn schema(&self) -> Value {
        let pattern = self.pattern.as_ref().and_then(|pattern| translate(&pattern.text));
        object([
            ("type", Some("string".into())),
            ("minLength", (self.min_length > 0).then(|| (self.min_length as i64).into())),
            ("maxLength", Some((self.max_length as i64).into())),
            ("pattern", Some(self.lines.expression().into())),
            ("allOf", patterns(pattern)),
        ])
    }

    fn control(&self) -> Control<'_> {
        let placeholder = self.placeholder.as_deref();
        match self.lines {
            Lines::One => Control::Line(Line { kind: LineKind::Text, placeholder, bounds: [None, None] }),
            Lines::Many => Control::Lines { placeholder, max_length: self.max_length },
        }
    }

    fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }

    fn max_length(&self) -> usize {
        self.max_length
    }

    fn example(&self) -> Value {
        match self.lines {
            Lines::One => "hello".into(),
            Lines::Many => "Dear all,\nhello".into(),
        }
    }

    fn expects(&self) -> String {
        match self.lines {
            Lines::One => "one line of text".to_owned(),
            Lines::Many => "text of one or more lines".to_owned(),
        }
    }
}

/// Checks that an answer is one line of text that passes `check`.
pub(super) fn check_line(
    answer: &Value,
    check: impl FnOnce(&str) -> Result<(), AnswerError>,
) -> Vec<AnswerError> {
    one_line(answer).and_then(check).err().into_iter().collect()
}

/// Returns the answer if it is one line of text without control characters.
pub(super) fn one_line(answer: &Value) -> Result<&str, AnswerError> {
    let Value::String(text) = answer else { return Err(AnswerError::wrong_type("text", answer)) };
    forbidden(text, Lines::One).map_or(Ok(text), Err)
}

/// Returns an error for the first forbidden character in `text`.
fn forbidden(text: &str, lines: Lines) -> Option<AnswerError> {
    let found = text.chars().find(|character| !lines.allow(*character))?;
    let message = match lines {
        Lines::One if breaks_line(found) => "Enter one line, without line breaks".to_owned(),
        Lines::One | Lines::Many => forbidden_message(found),
    };
    Some(AnswerError::new(Rule::InvalidCharacter, message))
}

fn breaks_line(character: char) -> bool {
    matches!(character, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
