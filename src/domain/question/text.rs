//! `short_text` and `long_text`: one line of text, or several lines.

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::pattern::ecma262::translate;
use crate::domain::pattern::{Anchor, Pattern};
use crate::domain::question::control::{Control, Line, LineKind};
use crate::domain::question::json::{object, patterns};
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::{Fields, is_forbidden};
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
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        let Value::String(text) = answer else {
            return vec![AnswerError::wrong_type(texts.type_text, answer, texts)];
        };
        let mut errors: Vec<_> = forbidden(text, self.lines, texts).into_iter().collect();
        let length = text.chars().count();
        let (min, max) = (self.min_length, self.max_length);
        if length < min {
            let instruction = fill(texts.at_least_characters, &[("min", &min)]);
            errors.push(AnswerError::instead_of(Rule::TooShort, &instruction, &length, texts));
        }
        if length > max {
            let instruction = fill(texts.at_most_characters, &[("max", &max)]);
            errors.push(AnswerError::instead_of(Rule::TooLong, &instruction, &length, texts));
        }
        // Matching takes time proportional to the length of the text.
        let pattern = self.pattern.as_ref().filter(|_| length <= max.max(MAX_MATCHED));
        if let Some(pattern) = pattern.filter(|pattern| !pattern.matches(text)) {
            let own = self.pattern_message.clone();
            let message = own.unwrap_or_else(|| fill(texts.matching, &[("pattern", &pattern.text)]));
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

    fn expects(&self, texts: &Texts) -> String {
        match self.lines {
            Lines::One => texts.expects_line.to_owned(),
            Lines::Many => texts.expects_lines.to_owned(),
        }
    }
}

/// Checks that an answer is one line of text that passes `check`.
pub(super) fn check_line(
    answer: &Value,
    texts: &Texts,
    check: impl FnOnce(&str) -> Result<(), AnswerError>,
) -> Vec<AnswerError> {
    one_line(answer, texts).and_then(check).err().into_iter().collect()
}

/// Returns the answer if it is one line of text without control characters.
pub(super) fn one_line<'a>(answer: &'a Value, texts: &Texts) -> Result<&'a str, AnswerError> {
    let Value::String(text) = answer else {
        return Err(AnswerError::wrong_type(texts.type_text, answer, texts));
    };
    forbidden(text, Lines::One, texts).map_or(Ok(text), Err)
}

/// Returns an error for the first forbidden character in `text`.
fn forbidden(text: &str, lines: Lines, texts: &Texts) -> Option<AnswerError> {
    let found = text.chars().find(|character| !lines.allow(*character))?;
    let message = match lines {
        Lines::One if breaks_line(found) => texts.one_line.to_owned(),
        Lines::One | Lines::Many => {
            let character = format!("U+{:04X}", u32::from(found));
            fill(texts.control_character, &[("character", &character)])
        }
    };
    Some(AnswerError::new(Rule::InvalidCharacter, message))
}

fn breaks_line(character: char) -> bool {
    matches!(character, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
