//! `short_text`: one line of text.

use regex::{Regex, RegexBuilder};

use super::{Fault, Rules};
use crate::domain::fields::Fields;
use crate::domain::json::Value;
use crate::domain::violation::Rule;

/// Characters an answer may have where the author set no `max_length`.
const MAX_LENGTH: i64 = 1_000;

/// One line of text.
#[derive(Debug, Clone, Default)]
pub struct ShortText {
    min_length: Option<i64>,
    max_length: Option<i64>,
    pattern: Option<Pattern>,
    pattern_message: Option<String>,
    placeholder: Option<String>,
}

/// A regular expression that an answer must match as a whole.
#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    whole: Regex,
}

impl Pattern {
    /// Bytes a compiled pattern may take. The syntax is that of the crate `regex`, which matches in linear time.
    const SIZE_LIMIT: usize = 1 << 20;

    /// Compiles `text`, or says what is wrong with it.
    fn compile(text: &str) -> Result<Self, String> {
        let compile = |text: &str| {
            RegexBuilder::new(text).size_limit(Self::SIZE_LIMIT).dfa_size_limit(Self::SIZE_LIMIT).build()
        };
        // Alone first: `a)|(b` would make sense only inside our own parentheses.
        let whole = compile(text).and_then(|_| compile(&format!("^(?:{text})$")));
        match whole {
            Ok(whole) => Ok(Self { text: text.to_owned(), whole }),
            Err(regex::Error::CompiledTooBig(_)) => Err("the pattern is too large".to_owned()),
            Err(error) => {
                let text = error.to_string();
                Err(text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
            }
        }
    }
}

impl ShortText {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let longest = 64 * 1024;
        let min_length = fields.integer("min_length", 0..=longest);
        let max_length = fields.integer("max_length", 1..=longest);
        let (min, max) = (min_length.unwrap_or(0), max_length.unwrap_or(MAX_LENGTH));
        if min > max {
            let message = format!("`min_length` ({min}) must not be above `max_length` ({max})");
            fields.refuse("min_length", Rule::InvalidRange, message);
        }
        let pattern = fields.text("pattern", 1_000).and_then(|text| match Pattern::compile(&text) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                fields.refuse(
                    "pattern",
                    Rule::InvalidPattern,
                    format!("`pattern` is no regular expression: {why}"),
                );
                None
            }
        });
        let pattern_message = fields.text("pattern_message", 300);
        let placeholder = fields.text("placeholder", 300);
        Self { min_length, max_length, pattern, pattern_message, placeholder }
    }

    fn check_length(&self, text: &str, faults: &mut Vec<Fault>) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let (min, max) = (self.min_length.unwrap_or(0), self.max_length.unwrap_or(MAX_LENGTH));
        if length < min {
            faults.push(Fault::new(Rule::TooShort, format!("Enter at least {min} characters, not {length}")));
        }
        if length > max {
            faults.push(Fault::new(Rule::TooLong, format!("Enter {max} characters at most, not {length}")));
        }
    }
}

impl Rules for ShortText {
    fn check(&self, answer: &Value) -> Vec<Fault> {
        let text = match one_line(answer) {
            Ok(text) => text,
            Err(fault) => return vec![fault],
        };
        let mut faults = Vec::new();
        self.check_length(text, &mut faults);
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.whole.is_match(text)) {
            let message = match &self.pattern_message {
                Some(message) => message.clone(),
                None => format!("Enter text that matches {}", pattern.text),
            };
            faults.push(Fault::new(Rule::PatternMismatch, message));
        }
        faults
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let number = |value: i64| Value::Number(value.into());
        let text = |value: &String| Value::String(value.clone());
        [
            ("min_length", self.min_length.map(number)),
            ("max_length", self.max_length.map(number)),
            ("pattern", self.pattern.as_ref().map(|pattern| text(&pattern.text))),
            ("pattern_message", self.pattern_message.as_ref().map(text)),
            ("placeholder", self.placeholder.as_ref().map(text)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }

    fn example(&self) -> Value {
        Value::String("hello".to_owned())
    }

    fn expects(&self) -> String {
        "one line of text".to_owned()
    }
}

/// The answer as one line of text without control characters (a tab is none).
pub(super) fn one_line(answer: &Value) -> Result<&str, Fault> {
    let Value::String(text) = answer else {
        return Err(Fault::new(Rule::TypeMismatch, format!("Enter text, not {}", answer.kind())));
    };
    // Nearly all answers are plain ASCII; looking at bytes is several times as fast as at characters.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(text);
    }
    match text.chars().find(|character| breaks_line(*character) || is_control(*character)) {
        Some(found) if breaks_line(found) => {
            Err(Fault::new(Rule::InvalidCharacter, "Enter one line, without line breaks"))
        }
        Some(found) => {
            let message = format!("The control character U+{:04X} is not allowed", u32::from(found));
            Err(Fault::new(Rule::InvalidCharacter, message))
        }
        None => Ok(text),
    }
}

fn breaks_line(character: char) -> bool {
    matches!(character, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// C0, DEL and C1, but for the tab.
fn is_control(character: char) -> bool {
    character.is_control() && character != '\t'
}
