//! Text for people: what steers a terminal is shown, and long lines are broken between words.

use std::fmt::Write as _;

use textwrap::{WordSeparator, WordSplitter};

/// `text` with control characters shown, so that it stays on one line and cannot steer a terminal.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if steers(character) => {
                let _infallible = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// `text` in lines of `width` columns at most, broken between words: a longer word is not broken.
pub fn wrapped(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// The same as [`visible`], for text of several lines.
pub fn visible_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => format!("{}\n", visible(line)),
            None => visible(line),
        })
        .collect()
}

/// Control characters, those that break lines, and those that turn the direction of what follows.
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with its first line, a message, broken between words where it is wider than `width`. Those below stay whole: they
/// are lines of somebody's file, or commands to be copied.
pub fn wrapped_message(text: &str, width: usize) -> String {
    match text.split_once('\n') {
        Some((message, rest)) => format!("{}\n{rest}", wrapped(message, width)),
        None => wrapped(text, width),
    }
}

#[cfg(test)]
mod tests {
    use super::{visible, wrapped_message};

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
        assert_eq!(wrapped_message(text, 24), expected);
        let coloured = "\u{1b}[1merror\u{1b}[0m: short enough";
        assert_eq!(wrapped_message(coloured, 20), coloured);
    }
}
