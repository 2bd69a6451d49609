//! Translation of patterns to ECMA-262, the regular expression dialect of JSON Schema.
//!
//! Patterns are generated from their parsed form: flags and classes such as `\d` are expanded to explicit characters,
//! which every engine reads alike. Only syntax is used that Python's `re` interprets the same way.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};

/// Matches at the end of a text: in Python, `$` alone also matches before a final line feed.
pub(in crate::domain) const END: &str = r"$(?!\n)";

/// Maximum bytes of a translated pattern: Unicode classes such as `\w` have hundreds of ranges and exceed it.
const MAX_LENGTH: usize = 2_000;

/// Translates `pattern`, anchored at both ends; `None` if the result would be long, or the pattern has word or line
/// boundaries or repeats an expression that can match the empty text.
pub(in crate::domain) fn translate(pattern: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = "^".to_owned();
    write(&hir, &mut text)?;
    text.push_str(END);
    (text.len() <= MAX_LENGTH).then_some(text)
}

fn write(hir: &Hir, text: &mut String) -> Option<()> {
    match hir.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => {
            std::str::from_utf8(&literal.0).ok()?.chars().for_each(|character| push(character, text));
        }
        HirKind::Class(Class::Unicode(class)) => write_class(class, text)?,
        HirKind::Class(Class::Bytes(class)) => write_class(&class.to_unicode_class()?, text)?,
        HirKind::Look(Look::Start) => text.push('^'),
        HirKind::Look(Look::End) => text.push_str(END),
        HirKind::Look(_) => return None,
        HirKind::Repetition(repetition) => write_repetition(repetition, text)?,
        HirKind::Capture(capture) => write(&capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(part, text))?,
        HirKind::Alternation(choices) => {
            text.push_str("(?:");
            for (index, choice) in choices.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "|" });
                write(choice, text)?;
            }
            text.push(')');
        }
    }
    Some(())
}

/// Refuses to repeat an expression that can match the empty text: backtracking engines differ in how often they do.
fn write_repetition(repetition: &Repetition, text: &mut String) -> Option<()> {
    if repetition.sub.properties().minimum_len() == Some(0) {
        return None;
    }
    let is_single = match repetition.sub.kind() {
        HirKind::Class(_) => true,
        HirKind::Literal(literal) => {
            std::str::from_utf8(&literal.0).is_ok_and(|text| text.chars().count() == 1)
        }
        _ => false,
    };
    text.push_str(if is_single { "" } else { "(?:" });
    write(&repetition.sub, text)?;
    text.push_str(if is_single { "" } else { ")" });
    text.push_str(&match (repetition.min, repetition.max) {
        (0, Some(1)) => "?".to_owned(),
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    });
    Some(())
}

/// Writes a class that includes the last code point as a negated class.
fn write_class(class: &ClassUnicode, text: &mut String) -> Option<()> {
    let is_open = class.ranges().last()?.end() == char::MAX;
    let mut class = class.clone();
    if is_open {
        class.negate();
    }
    if class.ranges().is_empty() {
        text.push_str(r"[\s\S]");
        return Some(());
    }
    text.push_str(if is_open { "[^" } else { "[" });
    for range in class.ranges() {
        push_in_class(range.start(), text);
        if range.start() != range.end() {
            text.push('-');
            push_in_class(range.end(), text);
        }
    }
    text.push(']');
    Some(())
}

/// Escapes `-` too, which ECMA-262 forbids outside a class.
fn push_in_class(character: char, text: &mut String) {
    text.push_str(if character == '-' { r"\" } else { "" });
    push(character, text);
}

fn push(character: char, text: &mut String) {
    match character {
        '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => {
            text.extend(['\\', character]);
        }
        ' '..='~' => text.push(character),
        _ if character.is_alphanumeric() || character > '\u{ffff}' => text.push(character),
        _ => text.push_str(&format!("\\u{:04x}", u32::from(character))),
    }
}

/// Returns an expression that matches `text` without regard to ASCII case.
pub(in crate::domain) fn case_insensitive(text: &str) -> String {
    let mut expression = String::new();
    for character in text.chars() {
        match (character.to_ascii_lowercase(), character.to_ascii_uppercase()) {
            (lower, upper) if lower != upper => expression.extend(['[', lower, upper, ']']),
            _ => push(character, &mut expression),
        }
    }
    expression
}
