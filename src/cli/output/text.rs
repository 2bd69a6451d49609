//! Text for people: escaping of control characters, and wrapping.

use std::fmt::Write as _;

use console::measure_text_width;
use textwrap::{WordSeparator, WordSplitter};

/// Escapes control characters, so that the text stays on one line and cannot control the terminal.
pub fn visible(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            _ if is_terminal_control(character) => {
                let _infallible = write!(escaped, "\\u{{{:x}}}", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Wraps `text` at `width` columns, without breaking words.
pub fn wrap(text: &str, width: usize) -> String {
    textwrap::fill(text, options(width))
}

fn options<'a>(width: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
}

/// Formats members on lines in 80 columns, with the values below one another; those without a value are left out.
pub fn fields(members: &[(&str, Option<String>)]) -> String {
    let width = 3 + members.iter().map(|(name, _)| measure_text_width(name)).max().unwrap_or_default();
    let below = format!("\n{}", " ".repeat(width));
    let line = |(name, value): &(&str, Option<String>)| {
        let lines = value.as_ref()?.trim_end().lines().map(|line| wrap(&visible(line), 80 - width));
        let value = lines.collect::<Vec<_>>().join("\n").replace('\n', &below);
        Some(format!("{:<width$}{value}\n", format!("{name}:")))
    };
    members.iter().filter_map(line).collect()
}

/// Escapes control characters except line feeds.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Whether the character is a control character, a line separator, or changes text direction.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Wraps the lines of a message at `width`. A line with a command or a path stays whole, so that it can be copied.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let is_whole = |line: &str| line.contains("forms ") || line.contains('/');
    let line = |line: &str| if is_whole(line) { line.to_owned() } else { wrap(line, width) };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Wraps a page that is made for 80 columns at `width`. A line and what continues it are indented alike, by an eighth at most.
pub fn wrap_page(page: &str, width: usize) -> String {
    let line = |line: &str| {
        let text = line.trim_start();
        let indent = " ".repeat((line.len() - text.len()).min(width / 8));
        textwrap::fill(text, options(width).initial_indent(&indent).subsequent_indent(&indent))
    };
    page.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Lower-cases the first letter: our messages start in lower case, the API's titles do not.
pub fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        // Abbreviations such as `API` and `E-mail` keep their capitals.
        Some(first) if !characters.as_str().starts_with(|next: char| next.is_uppercase() || next == '-') => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}
