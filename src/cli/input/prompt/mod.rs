//! Questions to the person. Where nobody can answer they are refused at once, naming the flag that answers them.
//!
//! dialoguer's theme says how a question looks. The keys are read here: its own prompts ignore Ctrl-D and mostly Esc, and
//! leave what they have drawn at Ctrl-C.

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

/// What the person has to do to say yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// Press y.
    Yes,
    /// Type this.
    Typed(String),
}

/// Whether a question may be asked: both streams are a terminal, and nothing speaks against it.
pub fn may_ask(no_input: bool, environment: &Environment) -> bool {
    obstacle(no_input, environment).is_none()
}

/// Why no question may be asked; `None` if one may.
pub fn obstacle(no_input: bool, environment: &Environment) -> Option<&'static str> {
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
pub async fn confirm(question: String, how: Confirmation) -> Result<(), CliError> {
    let question = visible(&question);
    let is_yes = match how {
        Confirmation::Yes => yes(question).await?,
        Confirmation::Typed(word) => {
            let prompt = format!("{question} Type {} to confirm", visible(&word));
            text(&prompt, "", true).await?.trim() == word
        }
    };
    if is_yes { Ok(()) } else { Err(CliError::Declined) }
}

/// Asks for a yes or a no, no by default.
pub async fn yes(question: impl Into<String>) -> Result<bool, CliError> {
    let question = question.into();
    let prompt = drawn(|text| SimpleTheme.format_confirm_prompt(text, &question, Some(false)));
    asked(move |term, keyboard| {
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

/// Asks for a line of text, which begins as `initial`, again and again while it is empty unless it `may_be_empty`.
pub async fn text(question: &str, initial: &str, may_be_empty: bool) -> Result<String, CliError> {
    let prompt = match question.ends_with('?') {
        true => format!("{question} "),
        false => drawn(|text| SimpleTheme.format_input_prompt(text, question, None)),
    };
    let initial = initial.to_owned();
    asked(move |term, keyboard| {
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

/// Asks for one of `items`: its place.
pub async fn choose(question: &str, items: &[&str]) -> Result<usize, CliError> {
    let (question, items) = (question.to_owned(), items.iter().map(|item| (*item).to_owned()));
    let items: Vec<_> = items.collect();
    asked(move |term, keyboard| {
        term.hide_cursor()?;
        let chosen = select(term, keyboard, &question, &items)?;
        term.show_cursor()?;
        if let Some(place) = chosen {
            let selection = |text: &mut String| {
                SimpleTheme.format_select_prompt_selection(text, &question, &items[place])
            };
            term.write_line(&drawn(selection))?;
        }
        Ok(chosen)
    })
    .await
}

/// Shows `items` until one is chosen; `None` if the person cancels. Then nothing of it is left on the screen.
fn select(
    term: &Term,
    keyboard: &mut Keyboard,
    question: &str,
    items: &[String],
) -> io::Result<Option<usize>> {
    let mut place: usize = 0;
    loop {
        let (height, width) = term.size();
        // The prompt has a row, and the cursor another.
        let room = usize::from(height).saturating_sub(2).max(1);
        // A row that wraps would be two, and clearing counts it as one.
        let cut = |row: &str| truncate_str(row, usize::from(width.max(2)) - 1, "…").into_owned();
        let start = (place + 1).saturating_sub(room);
        let shown = items.iter().enumerate().skip(start).take(room);
        let prompt = cut(&drawn(|text| SimpleTheme.format_select_prompt(text, question)));
        let choices = shown.map(|(at, item)| {
            cut(&drawn(|text| SimpleTheme.format_select_prompt_item(text, item, at == place)))
        });
        let rows: Vec<_> = iter::once(prompt).chain(choices).collect();
        term.write_line(&rows.join("\n"))?;
        let key = keyboard.key()?;
        term.clear_last_lines(rows.len())?;
        match key {
            Key::ArrowDown | Key::Tab | Key::Char('j') => place = (place + 1) % items.len(),
            Key::ArrowUp | Key::BackTab | Key::Char('k') => place = (place + items.len() - 1) % items.len(),
            Key::Enter | Key::Char(' ') => return Ok(Some(place)),
            key if line::cancels(&key) => return Ok(None),
            _ => {}
        }
    }
}

fn drawn(format: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    let _infallible = format(&mut text);
    text
}

/// Runs `questions`, which ask one after the other. Reports `cancelled` if a key or a signal cancels them.
///
/// # Errors
/// Those of `questions`; [`CliError::Interrupted`] if they are cancelled.
pub async fn dialogue<T>(
    output: &Output,
    cancelled: &str,
    questions: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let mut report = CancelReport { output, text: Some(cancelled) };
    // One mode for all questions: what is pasted may answer several of them.
    let raw = RawMode::enter().map_err(|error| CliError::io("cannot use the terminal", error))?;
    let ended = questions.await;
    drop(raw);
    if !matches!(ended, Err(CliError::Interrupted)) {
        report.text = None;
    }
    ended
}

/// Reports a cancelled dialogue when dropped: also when a signal drops the dialogue itself.
struct CancelReport<'a> {
    output: &'a Output,
    text: Option<&'a str>,
}

impl Drop for CancelReport<'_> {
    fn drop(&mut self) {
        if let Some(text) = self.text {
            self.output.say(text);
        }
    }
}

/// Waits for the answer to one question of a [`dialogue`]. No answer is [`CliError::Interrupted`].
async fn asked<T: Send + 'static>(
    ask: impl FnOnce(&Term, &mut Keyboard) -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, CliError> {
    let (cancelled, cancel) = io::pipe().map_err(|error| CliError::io("cannot ask", error))?;
    let (end, ended) = channel();
    let _cancel = CancelOnDrop { cancel: Some(cancel), ended };
    let answer = tokio::task::spawn_blocking(move || {
        let _end = end;
        ask(&Term::stderr(), &mut Keyboard::new(cancelled))
    });
    match answer.await {
        Ok(Ok(answer)) => answer.ok_or(CliError::Interrupted),
        // The terminal was closed: SIGHUP is on its way.
        Ok(Err(error)) if Errno::from_io_error(&error) == Some(Errno::IO) => Err(CliError::Interrupted),
        Ok(Err(error)) => Err(CliError::io("cannot ask", error)),
        Err(_) => Err(CliError::Interrupted),
    }
}

/// Cancels a question when dropped, and waits until its thread has ended the line and reads no more.
struct CancelOnDrop {
    cancel: Option<PipeWriter>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.cancel = None;
        let _disconnected = self.ended.recv();
    }
}

/// A terminal that hands on each key as it is pressed, Ctrl-C included, and shows none. Dropped, it discards what is
/// still to be read: the rest of a paste is not for the shell.
struct RawMode {
    _restore: Restore,
}

impl RawMode {
    fn enter() -> io::Result<Self> {
        let restore = Restore::at_the_end();
        if let Some(before) = &restore.0 {
            let mut raw = before.clone();
            raw.make_raw();
            raw.output_modes = before.output_modes;
            tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        }
        Ok(Self { _restore: restore })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _refused = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

/// Restores the terminal when dropped, also where a signal ends the question: meanwhile the cursor may be hidden, and
/// what is typed is not shown.
pub(super) struct Restore(Option<Termios>);

impl Restore {
    pub(super) fn at_the_end() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // There is nothing to be done about a terminal that refuses.
            let _refused = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        let _unseen = Term::stderr().show_cursor();
    }
}
