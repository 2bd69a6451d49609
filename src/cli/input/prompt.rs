//! Prompts of dialoguer, on stderr. If the user cannot be prompted, they fail at once and name the flag to use instead.

use std::io::{self, ErrorKind, IsTerminal};

use console::{Term, truncate_str};
use dialoguer::{Confirm, Input, MultiSelect, Select};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

use crate::cli::environment::Environment;
use crate::cli::output::exit::CliError;
use crate::cli::output::{Output, visible, visible_lines, wrap};

/// Columns for the marks of a prompt: `[y/N]`, or those of an item.
const MARKS: usize = 8;

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

/// Shows `text` to the user who is prompted, wrapped at the width of the terminal. A failure to write is that of the next
/// prompt.
pub fn show(text: &str) {
    let term = Term::stderr();
    let (_, width) = term.size();
    let _refused = term.write_line(&wrap(&visible_lines(text), usize::from(width)));
}

/// Discards what was typed so far: the rest of a paste is not the answer to a question that was not shown yet.
pub fn discard_typed() {
    // Nothing can be done if the terminal refuses.
    let _refused = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// Asks `question`. Fails with [`CliError::Declined`] if the answer is no.
pub async fn confirm(question: String, how: ConfirmBy) -> Result<(), CliError> {
    let is_yes = match how {
        ConfirmBy::Yes => yes_or_no(&question).await?,
        ConfirmBy::Typed(word) => {
            show(&question);
            text(&format!("Type {word} to confirm"), "", true).await?.trim() == word
        }
    };
    if is_yes { Ok(()) } else { Err(CliError::Declined) }
}

/// Asks a yes/no question, answered by a key. Enter is no.
pub async fn yes_or_no(question: &str) -> Result<bool, CliError> {
    let question = last_row(question);
    run(move |term| Confirm::new().with_prompt(question).default(false).interact_on(term)).await
}

/// Asks a yes/no question, answered by a key. If it `may_be_skipped`, Esc skips it, which returns `None`.
pub async fn yes_no_or_skip(question: &str, may_be_skipped: bool) -> Result<Option<bool>, CliError> {
    let question = last_row(question);
    run(move |term| {
        let prompt = Confirm::new().with_prompt(question);
        if may_be_skipped { prompt.interact_on_opt(term) } else { prompt.interact_on(term).map(Some) }
    })
    .await
}

/// Asks for a line of text, starting with `initial`. Asks again if it is empty, unless it `may_be_empty`.
pub async fn text(question: &str, initial: &str, may_be_empty: bool) -> Result<String, CliError> {
    let (question, initial) = (last_row(question), initial.to_owned());
    run(move |term| {
        let prompt = Input::<String>::new().with_prompt(question).with_initial_text(initial);
        prompt.allow_empty(may_be_empty).interact_text_on(term)
    })
    .await
}

/// Asks for a line of text that is not shown while it is typed: a dialogue has no echo. Asks again if it is empty.
///
/// dialoguer's own prompt discards what was typed before it turned echo off, such as a paste.
pub async fn secret(question: &str) -> Result<String, CliError> {
    let question = last_row(question);
    run(move |term| {
        let mut lines = tcgetattr(io::stdin()).map_err(io::Error::from)?;
        lines.local_modes |= LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Now, &lines).map_err(io::Error::from)?;
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            term.write_str(&format!("{question}: "))?;
            if io::stdin().read_line(&mut line)? == 0 {
                return Err(io::Error::from(ErrorKind::Interrupted).into());
            }
            term.write_line("")?;
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    })
    .await
}

/// Asks for one of `items`; returns its index.
pub async fn choose(question: &str, items: &[impl AsRef<str>]) -> Result<usize, CliError> {
    let (question, items) = (one_row(question), rows(items));
    run(move |term| Select::new().with_prompt(question).items(&items).default(0).interact_on(term)).await
}

/// Asks for one of `items`; returns its index, or `None` after Esc.
pub async fn choose_or_escape(question: &str, items: &[impl AsRef<str>]) -> Result<Option<usize>, CliError> {
    let (question, items) = (one_row(question), rows(items));
    run(move |term| Select::new().with_prompt(question).items(&items).default(0).interact_on_opt(term)).await
}

/// Asks for any number of `items`; returns their indices in ascending order.
pub async fn choose_several(question: &str, items: &[impl AsRef<str>]) -> Result<Vec<usize>, CliError> {
    let (question, items) = (one_row(question), rows(items));
    run(move |term| MultiSelect::new().with_prompt(question).items(&items).interact_on(term)).await
}

/// Wraps a question at the width of the terminal, and shows all of its rows but the last, which it returns: a prompt draws
/// one row.
fn last_row(question: &str) -> String {
    let (_, width) = Term::stderr().size();
    let mut text = wrap(&visible(question), usize::from(width).saturating_sub(MARKS));
    if let Some(end) = text.rfind('\n') {
        show(&text[..end]);
        text.drain(..=end);
    }
    text
}

fn rows(items: &[impl AsRef<str>]) -> Vec<String> {
    items.iter().map(|item| one_row(item.as_ref())).collect()
}

/// Cuts `text` to a row with space for the marks of a list: clearing a list counts one row for each item.
fn one_row(text: &str) -> String {
    let (_, width) = Term::stderr().size();
    truncate_str(&visible(text), usize::from(width).saturating_sub(MARKS).max(1), "…").into_owned()
}

/// Runs a sequence of prompts. Prints `canceled` if Ctrl-C or a signal cancels it.
///
/// # Errors
/// Those of `questions`; [`CliError::Interrupted`] if canceled.
pub async fn dialogue<T>(
    output: &Output,
    canceled: &str,
    questions: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let mut report = CancelReport { output, text: Some(canceled) };
    let quiet =
        TerminalRestore::without_echo().map_err(|error| CliError::io("cannot use the terminal", error))?;
    let result = questions.await;
    drop(quiet);
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
            // The prompt has left the cursor within its line.
            self.output.status("");
            self.output.status(text);
        }
    }
}

/// Runs one prompt on a blocking thread, so that a signal can end the command meanwhile.
async fn run<T: Send + 'static>(
    prompt: impl FnOnce(&Term) -> dialoguer::Result<T> + Send + 'static,
) -> Result<T, CliError> {
    match tokio::task::spawn_blocking(move || prompt(&Term::stderr())).await {
        Ok(Ok(answer)) => Ok(answer),
        // Ctrl-C; or the terminal was closed, and SIGHUP is on its way.
        Ok(Err(dialoguer::Error::IO(error)))
            if error.kind() == ErrorKind::Interrupted || Errno::from_io_error(&error) == Some(Errno::IO) =>
        {
            Err(CliError::Interrupted)
        }
        Ok(Err(dialoguer::Error::IO(error))) => Err(CliError::io("cannot ask", error)),
        Err(_) => Err(CliError::Interrupted),
    }
}

/// Restores the terminal when dropped, also after a signal: a prompt may have hidden the cursor and disabled echo.
pub(super) struct TerminalRestore {
    before: Option<Termios>,
    /// Whether to discard what was typed for prompts, so that the rest of a paste does not reach the shell.
    discards_input: bool,
}

impl TerminalRestore {
    pub(super) fn on_drop() -> Self {
        Self { before: tcgetattr(io::stdin()).ok(), discards_input: false }
    }

    /// Turns echo, line editing and signals off: keys typed between two prompts, as in a paste, are for the prompt that
    /// reads them, Ctrl-C too.
    fn without_echo() -> io::Result<Self> {
        let mut restore = Self::on_drop();
        restore.discards_input = true;
        if let Some(before) = &restore.before {
            let mut quiet = before.clone();
            quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
            tcsetattr(io::stdin(), OptionalActions::Now, &quiet)?;
        }
        Ok(restore)
    }
}

impl Drop for TerminalRestore {
    fn drop(&mut self) {
        if self.discards_input {
            discard_typed();
        }
        if let Some(before) = &self.before {
            // Nothing can be done if the terminal refuses.
            let _refused = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        let _refused = Term::stderr().show_cursor();
    }
}
