//! Text for people: escaping of control characters, and wrapping.

use std::fmt::Write as _;

use textwrap::{WordSeparator, WordSplitter};

/// Escapes control characters, so that the text stays on one line and cannot control the terminal.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_terminal_control(character) => {
                let _infallible = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Wraps `text` at `width` columns, without breaking words.
pub fn wrap(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// Escapes control characters except line feeds.
pub fn visible_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => format!("{}\n", visible(line)),
            None => visible(line),
        })
        .collect()
}

/// Whether the character is a control character, a line separator, or changes text direction.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Wraps the first line, which is the message, at `width`. The other lines are unchanged: they are source lines, or
/// commands to copy.
pub fn wrap_message(text: &str, width: usize) -> String {
    match text.split_once('\n') {
        Some((message, rest)) => format!("{}\n{rest}", wrap(message, width)),
        None => wrap(text, width),
    }
}

#[cfg(test)]
mod tests {
    use super::{visible, wrap_message};

    #[test]
    fn text_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(
            visible("a\u{1b}]0;x\u{7}\u{9b}\u{202e}b\tc\nd"),
            "a\\u{1b}]0;x\\u{7}\\u{9b}\\u{202e}b\\tc\\nd"
        );
        assert_eq!(visible("größer 😀"), "größer 😀");
    }

    #[test]
    fn a_message_is_broken_between_words_and_a_command_stays_whole() {
        let text = "error: nothing is known of the thing\n  = help: a command to be copied";
        let expected = "error: nothing is known\nof the thing\n  = help: a command to be copied";
        assert_eq!(wrap_message(text, 24), expected);
        let coloured = "\u{1b}[1merror\u{1b}[0m: short enough";
        assert_eq!(wrap_message(coloured, 20), coloured);
    }
}
