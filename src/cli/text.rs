//! Text for people: what steers a terminal is shown, and long lines are broken between words.

use std::fmt::Write as _;

use console::measure_text_width;

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

/// `text` in lines of `width` characters at most, broken between words.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
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
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with every line that is wider than `width` broken between words. What follows is indented as far as the text
/// behind the mark of a note: `  = help: `.
pub fn wrapped_lines(text: &str, width: usize) -> String {
    text.lines().map(|line| wrapped_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, width: usize) -> String {
    // A line of somebody's file stays as it is.
    if measure_text_width(line) <= width || line.contains(" | ") {
        return line.to_owned();
    }
    let indent = if line.starts_with("  ") { 4 } else { 0 };
    let (mut done, mut taken) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let wide = measure_text_width(word.trim_end());
        if taken > indent && taken + wide > width {
            done.truncate(done.trim_end().len());
            let _infallible = write!(done, "\n{:indent$}", "");
            taken = indent;
        }
        done.push_str(word);
        taken += measure_text_width(word);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::{visible, wrapped_lines};

    #[test]
    fn text_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(
            visible("a\u{1b}]0;x\u{7}\u{9b}\u{202e}b\tc\nd"),
            "a\\u{1b}]0;x\\u{7}\\u{9b}\\u{202e}b\\tc\\nd"
        );
        assert_eq!(visible("größer 😀"), "größer 😀");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = "error: nothing is known of the thing\n  = help: look for it in another place\n1 | a line of a file stays as it is";
        let expected = "error: nothing is known\nof the thing\n  = help: look for it in\n    another place\n1 | a line of a file stays as it is";
        assert_eq!(wrapped_lines(text, 24), expected);
        let coloured = "\u{1b}[1merror\u{1b}[0m: short enough";
        assert_eq!(wrapped_lines(coloured, 20), coloured);
    }
}
