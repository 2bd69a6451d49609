//! Line editing at the terminal.

use std::io;

use console::{Key, Term, measure_text_width};
use rustix::event::Timespec;

use crate::cli::input::prompt::keys::Keyboard;

/// Ctrl-D.
const END_OF_INPUT: Key = Key::Char('\u{4}');

pub(super) fn cancels(key: &Key) -> bool {
    matches!(key, Key::CtrlC | Key::Escape) || *key == END_OF_INPUT
}

/// Text on both sides of the cursor.
#[derive(Default)]
struct Line {
    before: String,
    after: String,
}

/// Effect of a key.
#[derive(PartialEq)]
enum Step {
    Edit,
    Enter,
    Cancel,
}

impl Line {
    fn apply(&mut self, key: Key) -> Step {
        match key {
            Key::Enter => return Step::Enter,
            END_OF_INPUT if !self.is_empty() => {}
            key if cancels(&key) => return Step::Cancel,
            Key::Backspace => drop(self.before.pop()),
            Key::Del => drop(self.take_next()),
            Key::ArrowLeft => {
                if let Some(character) = self.before.pop() {
                    self.after.insert(0, character);
                }
            }
            Key::ArrowRight => {
                let next = self.take_next();
                self.before.extend(next);
            }
            Key::Home => self.after.insert_str(0, &std::mem::take(&mut self.before)),
            Key::End => self.before.push_str(&std::mem::take(&mut self.after)),
            // Ctrl-U, Ctrl-K and Ctrl-W.
            Key::Char('\u{15}') => *self = Self::default(),
            Key::Char('\u{b}') => self.after.clear(),
            Key::Char('\u{17}') => self.drop_word(),
            Key::Char(character) if !character.is_control() => self.before.push(character),
            _ => {}
        }
        Step::Edit
    }

    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    fn take_next(&mut self) -> Option<char> {
        (!self.after.is_empty()).then(|| self.after.remove(0))
    }

    fn drop_word(&mut self) {
        let words = self.before.trim_end();
        let start = words.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        self.before.truncate(start);
    }

    fn into_text(self) -> String {
        self.before + &self.after
    }
}

/// Reads a line after `prompt`, starting with `initial`; `None` if the user cancels. Either way the cursor ends on a new
/// line.
pub(super) fn read(
    term: &Term,
    keyboard: &mut Keyboard,
    prompt: &str,
    initial: &str,
) -> io::Result<Option<String>> {
    let (mut line, mut row) = (Line { before: initial.to_owned(), after: String::new() }, 0);
    loop {
        // A paste is rendered once: rendering each key would take quadratic time.
        if !keyboard.has_input(Timespec::default())? {
            row = render(term, prompt, &line, row)?;
        }
        let step = line.apply(keyboard.key()?);
        if step == Step::Edit {
            continue;
        }
        line.apply(Key::End);
        render(term, prompt, &line, row)?;
        term.write_line("")?;
        return Ok((step == Step::Enter).then(|| line.into_text()));
    }
}

/// Reads a line like [`read`] without showing it.
pub(super) fn read_hidden(term: &Term, keyboard: &mut Keyboard, prompt: &str) -> io::Result<Option<String>> {
    let mut line = Line::default();
    term.write_str(prompt)?;
    term.flush()?;
    loop {
        let step = line.apply(keyboard.key()?);
        if step != Step::Edit {
            term.write_line("")?;
            return Ok((step == Step::Enter).then(|| line.into_text()));
        }
    }
}

/// Renders `prompt` and `line` again, with the cursor `row` rows below the start; returns its new row.
fn render(term: &Term, prompt: &str, line: &Line, row: usize) -> io::Result<usize> {
    let columns = usize::from(term.size().1).max(1);
    let cursor = measure_text_width(prompt) + measure_text_width(&line.before);
    let end = cursor + measure_text_width(&line.after);
    term.move_cursor_up(row)?;
    term.write_str("\r")?;
    term.clear_to_end_of_screen()?;
    // A terminal leaves the cursor in a full row until one more character comes.
    let fill = if end.is_multiple_of(columns) { "\n" } else { "" };
    term.write_str(&format!("{prompt}{}{}{fill}\r", line.before, line.after))?;
    term.move_cursor_up(end / columns - cursor / columns)?;
    term.move_cursor_right(cursor % columns)?;
    term.flush()?;
    Ok(cursor / columns)
}
