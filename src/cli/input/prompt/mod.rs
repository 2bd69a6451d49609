//! Prompts. If the user cannot be prompted, they fail at once and name the flag to use instead.
//!
//! dialoguer's theme formats the questions. The keys are read here: its own prompts ignore Ctrl-D and mostly Esc, and
//! leave their output behind at Ctrl-C.

mod keys;
mod line;

use std::fmt;
use std::io::{self, IsTerminal, PipeWriter};
use std::iter;
use std::sync::mpsc::{Receiver, channel};

use console::{Key, Term, truncate_str};
use dialoguer::theme::{SimpleTheme, Theme};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

use crate::cli::environment::Environment;
use crate::cli::output::exit::CliError;
use crate::cli::output::{Output, visible};
use keys::Keyboard;

/// How to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmBy {
    /// By pressing y.
    Yes,
    /// By typing this text.
    Typed(String),
}

/// Returns why the user cannot be prompted; `None` if they can.
pub fn prompt_obstacle(no_input: bool, environment: &Environment) -> Option<&'static str> {
    match () {
        () if no_input => Some("--no-input is given"),
        () if environment.get("FORMS_NO_INPUT").is_some() => Some("FORMS_NO_INPUT is set"),
        () if environment.get("CI").is_some() => Some("CI is set"),
        () if environment.get("TERM") == Some("dumb") => Some("TERM is `dumb`"),
        () if !io::stdin().is_terminal() || !io::stderr().is_terminal() => Some("there is no terminal"),
        () => None,
    }
}

/// Asks `question`. Fails with [`CliError::Declined`] if the answer is no.
pub async fn confirm(question: String, how: ConfirmBy) -> Result<(), CliError> {
    let question = visible(&question);
    let is_yes = match how {
        ConfirmBy::Yes => yes_or_no(question).await?,
        ConfirmBy::Typed(word) => {
            let prompt = format!("{question} Type {} to confirm", visible(&word));
            text(&prompt, "", true).await?.trim() == word
        }
    };
    if is_yes { Ok(()) } else { Err(CliError::Declined) }
}

/// Asks a yes/no question; the default is no.
pub async fn yes_or_no(question: impl Into<String>) -> Result<bool, CliError> {
    let question = question.into();
    let prompt = themed(|text| SimpleTheme.format_confirm_prompt(text, &question, Some(false)));
    run_prompt(move |term, keyboard| {
        loop {
            let Some(answer) = line::read(term, keyboard, &prompt, "")? else { return Ok(None) };
            match answer.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Some(true)),
                "" | "n" | "no" => return Ok(Some(false)),
                _ => term.write_line("expected y or n; Ctrl-C cancels")?,
            }
        }
    })
    .await
}

/// Asks for a line of text, starting with `initial`. Asks again if it is empty, unless it `may_be_empty`.
pub async fn text(question: &str, initial: &str, may_be_empty: bool) -> Result<String, CliError> {
    let prompt = match question.ends_with('?') {
        true => format!("{question} "),
        false => themed(|text| SimpleTheme.format_input_prompt(text, question, None)),
    };
    let initial = initial.to_owned();
    run_prompt(move |term, keyboard| {
        loop {
            match line::read(term, keyboard, &prompt, &initial)? {
                Some(text) if text.trim().is_empty() && !may_be_empty => {
                    term.write_line("must not be empty; Ctrl-C cancels")?;
                }
                read => return Ok(read),
            }
        }
    })
    .await
}

/// Asks for a line of text that is not shown while it is typed. Asks again if it is empty.
pub async fn secret(question: &str) -> Result<String, CliError> {
    let prompt = themed(|text| SimpleTheme.format_input_prompt(text, question, None));
    run_prompt(move |term, keyboard| {
        loop {
            match line::read_hidden(term, keyboard, &prompt)? {
                Some(text) if text.trim().is_empty() => {
                    term.write_line("must not be empty; Ctrl-C cancels")?;
                }
                read => return Ok(read),
            }
        }
    })
    .await
}

/// Asks for one of `items`; returns its index.
pub async fn choose(question: &str, items: &[&str]) -> Result<usize, CliError> {
    let question = question.to_owned();
    let items: Vec<_> = items.iter().map(|item| (*item).to_owned()).collect();
    run_prompt(move |term, keyboard| {
        term.hide_cursor()?;
        let chosen = select(term, keyboard, &question, &items)?;
        term.show_cursor()?;
        if let Some(index) = chosen {
            term.write_line(&themed(|text| {
                SimpleTheme.format_select_prompt_selection(text, &question, &items[index])
            }))?;
        }
        Ok(chosen)
    })
    .await
}

/// Shows `items` until one is chosen, then clears them; `None` if the user cancels.
fn select(
    term: &Term,
    keyboard: &mut Keyboard,
    question: &str,
    items: &[String],
) -> io::Result<Option<usize>> {
    let mut current: usize = 0;
    loop {
        let (height, width) = term.size();
        // One row for the prompt, one for the cursor.
        let room = usize::from(height).saturating_sub(2).max(1);
        // Rows must not wrap: clearing counts each as one.
        let cut = |row: &str| truncate_str(row, usize::from(width.max(2)) - 1, "…").into_owned();
        let start = (current + 1).saturating_sub(room);
        let shown = items.iter().enumerate().skip(start).take(room);
        let prompt = cut(&themed(|text| SimpleTheme.format_select_prompt(text, question)));
        let choices = shown.map(|(index, item)| {
            cut(&themed(|text| SimpleTheme.format_select_prompt_item(text, item, index == current)))
        });
        let rows: Vec<_> = iter::once(prompt).chain(choices).collect();
        term.write_line(&rows.join("\n"))?;
        let key = keyboard.key()?;
        term.clear_last_lines(rows.len())?;
        match key {
            Key::ArrowDown | Key::Tab | Key::Char('j') => current = (current + 1) % items.len(),
            Key::ArrowUp | Key::BackTab | Key::Char('k') => {
                current = (current + items.len() - 1) % items.len();
            }
            Key::Enter | Key::Char(' ') => return Ok(Some(current)),
            key if line::cancels(&key) => return Ok(None),
            _ => {}
        }
    }
}

fn themed(format: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    let _infallible = format(&mut text);
    text
}

/// Runs a sequence of prompts. Prints `canceled` if a key or a signal cancels it.
///
/// # Errors
/// Those of `questions`; [`CliError::Interrupted`] if canceled.
pub async fn dialogue<T>(
    output: &Output,
    canceled: &str,
    questions: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let mut report = CancelReport { output, text: Some(canceled) };
    // One mode for all prompts: pasted text may answer several of them.
    let raw = TerminalRestore::raw().map_err(|error| CliError::io("cannot use the terminal", error))?;
    let result = questions.await;
    drop(raw);
    if !matches!(result, Err(CliError::Interrupted)) {
        report.text = None;
    }
    result
}

/// Reports a canceled dialogue when dropped, also if a signal drops the dialogue itself.
struct CancelReport<'a> {
    output: &'a Output,
    text: Option<&'a str>,
}

impl Drop for CancelReport<'_> {
    fn drop(&mut self) {
        if let Some(text) = self.text {
            self.output.status(text);
        }
    }
}

/// Runs one prompt of a [`dialogue`] on a blocking thread. No answer is [`CliError::Interrupted`].
async fn run_prompt<T: Send + 'static>(
    ask: impl FnOnce(&Term, &mut Keyboard) -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, CliError> {
    let (canceled, cancel) = io::pipe().map_err(|error| CliError::io("cannot ask", error))?;
    let (running, end) = channel();
    let _cancel = CancelOnDrop { cancel: Some(cancel), end };
    let answer = tokio::task::spawn_blocking(move || {
        let _running = running;
        ask(&Term::stderr(), &mut Keyboard::new(canceled))
    });
    match answer.await {
        Ok(Ok(answer)) => answer.ok_or(CliError::Interrupted),
        // The terminal was closed: SIGHUP is on its way.
        Ok(Err(error)) if Errno::from_io_error(&error) == Some(Errno::IO) => Err(CliError::Interrupted),
        Ok(Err(error)) => Err(CliError::io("cannot ask", error)),
        Err(_) => Err(CliError::Interrupted),
    }
}

/// Cancels a prompt when dropped, and waits until its thread has stopped reading.
struct CancelOnDrop {
    cancel: Option<PipeWriter>,
    /// Disconnected when the thread has ended.
    end: Receiver<()>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.cancel = None;
        let _disconnected = self.end.recv();
    }
}

/// Restores the terminal when dropped, also after a signal: a prompt may have hidden the cursor and disabled echo.
pub(super) struct TerminalRestore {
    before: Option<Termios>,
    is_raw: bool,
}

impl TerminalRestore {
    pub(super) fn on_drop() -> Self {
        Self { before: tcgetattr(io::stdin()).ok(), is_raw: false }
    }

    /// Enters raw mode: keys are delivered as they are pressed, Ctrl-C included, and not echoed.
    fn raw() -> io::Result<Self> {
        let mut restore = Self::on_drop();
        restore.is_raw = true;
        if let Some(before) = &restore.before {
            let mut raw = before.clone();
            raw.make_raw();
            raw.output_modes = before.output_modes;
            tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        }
        Ok(restore)
    }
}

impl Drop for TerminalRestore {
    fn drop(&mut self) {
        // Nothing can be done if the terminal refuses.
        if self.is_raw {
            // The rest of a paste must not reach the shell.
            let _refused = tcflush(io::stdin(), QueueSelector::IFlush);
        }
        if let Some(before) = &self.before {
            let _refused = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        let _refused = Term::stderr().show_cursor();
    }
}
