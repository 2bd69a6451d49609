//! Texts within the limits of a service, and inert in its markup.

use crate::domain::integration::answers::{MAILTO, ShownAnswer};
use crate::domain::integration::message::Message;

/// Writes a character, given the one before, so that it means nothing to the service.
pub(super) type Escape = fn(char, Option<char>, &mut String);

/// A space that begins no block of code.
const NO_BREAK_SPACE: char = '\u{a0}';

/// Characters of the title of a question in a text.
const MAX_QUESTION: usize = 150;

/// How a service writes a message that is one text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextStyle {
    pub max: usize,
    pub unit: Unit,
    pub escape: Escape,
    /// Writes a URL, or an address, so that it is a link to itself.
    pub link: fn(&str) -> String,
    /// The markup before and after bold text.
    pub bold: (&'static str, &'static str),
    pub line_break: &'static str,
}

impl TextStyle {
    /// Returns the message: its title, each answer below its question, and the last lines.
    pub(super) fn write(self, message: &Message) -> String {
        let Self { line_break, .. } = self;
        let title = format!("{}{line_break}{line_break}", self.bold(&message.title));
        self.fit(message, |message, share| format!("{title}{}", self.body_lines(message, share)))
    }

    /// Returns the answers and the last lines.
    pub(super) fn write_body(self, message: &Message) -> String {
        self.fit(message, |message, share| self.body_lines(message, share))
    }

    fn fit(self, message: &Message, build: impl Fn(&Message, usize) -> String) -> String {
        message.fit(self.max, build, |text| self.unit.of(text) <= self.max)
    }

    fn body_lines(self, message: &Message, share: usize) -> String {
        let mut text = String::new();
        for field in &message.fields {
            text.push_str(&self.bold(&field.title));
            text.push_str(self.line_break);
            text.push_str(&self.answer(field, share));
            text.push_str(&self.line_break.repeat(2));
        }
        let notes: Vec<_> =
            message.notes().map(|note| clip(&note, MAX_NOTE, self.unit, self.escape)).collect();
        text + &notes.join(self.line_break)
    }

    fn answer(self, field: &ShownAnswer, share: usize) -> String {
        let link =
            field.shown_link().map(|shown| (self.link)(&shown)).filter(|link| self.unit.of(link) <= share);
        link.unwrap_or_else(|| or_dash(clip(&field.text, share, self.unit, self.escape)))
    }

    fn bold(self, text: &str) -> String {
        let (start, end) = self.bold;
        format!("{start}{}{end}", or_dash(clip(text, MAX_QUESTION, self.unit, self.escape)))
    }
}

/// Returns `text`, or a dash if it is blank: services refuse blank texts.
pub(super) fn or_dash(text: String) -> String {
    if text.trim().is_empty() { "–".to_owned() } else { text }
}

/// Characters of a last line.
pub(super) const MAX_NOTE: usize = 300;

/// How a service measures a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Characters,
    /// Code units of UTF-16, as JavaScript counts: an emoji is two.
    Utf16,
    Bytes,
}

/// The last character of a text that was cut.
const CUT: char = '…';

impl Unit {
    pub(super) fn of(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Bytes => text.len(),
        }
    }
}

/// Returns `text` with each character as `escape` writes it, given the one before; cut so that it has at most `max` units,
/// the mark of the cut included.
pub(super) fn clip(text: &str, max: usize, unit: Unit, escape: Escape) -> String {
    let mut mark = [0; 4];
    let mark = unit.of(CUT.encode_utf8(&mut mark));
    let (mut clipped, mut size, mut before) = (String::new(), 0, None);
    // The end and the size of what leaves room for the mark.
    let mut safe_end = 0;
    for character in text.chars() {
        let start = clipped.len();
        escape(character, before, &mut clipped);
        size += unit.of(&clipped[start..]);
        if size > max {
            clipped.truncate(safe_end);
            clipped.push(CUT);
            return clipped;
        }
        if size + mark <= max {
            safe_end = clipped.len();
        }
        before = Some(character);
    }
    clipped
}

/// Writes every character as it is.
pub(super) fn verbatim(character: char, _: Option<char>, text: &mut String) {
    text.push(character);
}

/// Writes `&`, `<` and `>` as entities.
pub(super) fn entities(character: char, _: Option<char>, text: &mut String) {
    match character {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        other => text.push(other),
    }
}

/// Writes Markdown's special characters with a backslash, as `CommonMark` and its dialects read them.
///
/// Lines do not begin with spaces, which would make them code.
pub(super) fn markdown(character: char, before: Option<char>, text: &mut String) {
    let begins_word = before.is_none_or(char::is_whitespace);
    let is_special = match character {
        '\\' | '`' | '*' | '_' | '~' | '|' | '[' | ']' | '(' | ')' | '{' | '}' | '#' | '>' | '!' | '$' => {
            true
        }
        // Lists and headings at the start of a line.
        '-' | '+' => begins_word,
        // Lists: `1.`; links: `www.`.
        '.' => before.is_some_and(|found| found.is_ascii_digit() || matches!(found, 'w' | 'W')),
        _ => false,
    };
    if is_special {
        text.push('\\');
    }
    text.push(if begins_word && matches!(character, ' ' | '\t') { NO_BREAK_SPACE } else { character });
}

/// Writes a URL, or an address, as a link of HTML.
pub(super) fn html_link(shown: &str) -> String {
    let scheme = if shown.contains("://") { "" } else { MAILTO };
    let shown = shown.replace('&', "&amp;");
    format!("<a href=\"{scheme}{shown}\">{shown}</a>")
}
