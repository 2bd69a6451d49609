//! Questions to the person. Where nobody can answer they are refused at once, naming the flag that answers them.
//!
//! dialoguer's theme says how a question looks. The keys are read here: its own prompts ignore Ctrl-D and mostly Esc, and
//! leave what they have drawn at Ctrl-C.

mod line;

use std::fmt;
use std::io::{self, IsTerminal};
use std::iter;
use std::sync::OnceLock;

use console::{Key, Term, truncate_str};
use dialoguer::theme::{SimpleTheme, Theme};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::environment::Environment;
use crate::cli::exit::CliError;
use crate::cli::output::visible;

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
            text(&prompt, true).await?.trim() == word
        }
    };
    if is_yes { Ok(()) } else { Err(CliError::Declined) }
}

/// Asks for a yes or a no, no by default.
pub async fn yes(question: impl Into<String>) -> Result<bool, CliError> {
    let question = question.into();
    asked(move |term| {
        term.write_str(&drawn(|text| SimpleTheme.format_confirm_prompt(text, &question, Some(false))))?;
        let is_yes = loop {
            match term.read_key_raw()? {
                Key::Char('y' | 'Y') => break Some(true),
                Key::Char('n' | 'N') | Key::Enter => break Some(false),
                key if line::cancels(&key) => break None,
                _ => {}
            }
        };
        term.write_line(is_yes.map_or("", |is_yes| if is_yes { "yes" } else { "no" }))?;
        Ok(is_yes)
    })
    .await
}

/// Asks for a line of text, again and again while it is empty unless it `may_be_empty`.
pub async fn text(question: &str, may_be_empty: bool) -> Result<String, CliError> {
    let prompt = match question.ends_with('?') {
        true => format!("{question} "),
        false => drawn(|text| SimpleTheme.format_input_prompt(text, question, None)),
    };
    asked(move |term| {
        loop {
            match line::read(term, &prompt)? {
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
    asked(move |term| {
        term.hide_cursor()?;
        let chosen = select(term, &question, &items)?;
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
fn select(term: &Term, question: &str, items: &[String]) -> io::Result<Option<usize>> {
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
        let key = term.read_key_raw()?;
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

/// Waits for the answer, and gives the terminal back as it was. No answer is [`CliError::Interrupted`].
async fn asked<T: Send + 'static>(
    ask: impl FnOnce(&Term) -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, CliError> {
    let restore = Restore::at_the_end();
    restore.take_keys().map_err(|error| CliError::io("cannot use the terminal", error))?;
    let answer = async {
        match tokio::task::spawn_blocking(move || ask(&Term::stderr())).await {
            Ok(Ok(answer)) => answer.ok_or(CliError::Interrupted),
            // The terminal was closed.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Err(CliError::Interrupted),
            Ok(Err(error)) => Err(CliError::io("cannot ask", error)),
            Err(_) => Err(CliError::Interrupted),
        }
    };
    until_ended(answer).await
}

/// Runs `work` until it ends, or drops it at SIGTERM or SIGHUP, so that what it holds is restored or kept.
///
/// # Errors
/// Those of `work`, and [`CliError::Interrupted`].
pub async fn until_ended<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let listen = |kind| signal(kind).map_err(|error| CliError::io("cannot listen for signals", error));
    let mut hangup = listen(SignalKind::hangup())?;
    let mut terminate = listen(SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = hangup.recv() => Err(CliError::Interrupted),
        _ = terminate.recv() => Err(CliError::Interrupted),
        ended = work => ended,
    }
}

/// Restores the terminal when dropped, also where a signal ends the question: meanwhile the cursor may be hidden, and
/// what is typed is not shown.
pub(super) struct Restore(Option<Termios>);

/// The terminal as it was before the first question.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// Gives the terminal back at the end of the process. A question that a signal has ended is still being read by its
/// thread, which may have changed the terminal once more since [`Restore`] gave it back.
pub fn restore_terminal() {
    if let Some(before) = BEFORE.get() {
        let _refused = tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
}

impl Restore {
    pub(super) fn at_the_end() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            BEFORE.get_or_init(|| before.clone());
        }
        Self(before)
    }

    /// Makes the terminal hand on each key as it is pressed, Ctrl-C included, and show none.
    fn take_keys(&self) -> io::Result<()> {
        let Some(before) = &self.0 else { return Ok(()) };
        let mut raw = before.clone();
        raw.make_raw();
        raw.output_modes = before.output_modes;
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
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
