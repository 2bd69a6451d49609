//! Questions to the person. Where nobody can answer they are refused at once, naming the flag that answers them.

use std::io::{self, IsTerminal};

use console::Term;
use dialoguer::{Confirm, Input, Select};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

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
    let is_yes = asked(move || ask(&visible(&question), &how)).await?;
    if is_yes { Ok(()) } else { Err(CliError::Declined) }
}

/// Asks for a yes or a no.
pub async fn yes(question: &'static str) -> Result<bool, CliError> {
    asked(move || Confirm::new().with_prompt(question).default(false).interact()).await
}

/// Asks for a line of text.
pub async fn text(question: &str, may_be_empty: bool) -> Result<String, CliError> {
    let question = question.to_owned();
    asked(move || Input::new().with_prompt(question).allow_empty(may_be_empty).interact_text()).await
}

/// Asks for one of `items`: its place.
pub async fn choose(question: &str, items: &[&str]) -> Result<usize, CliError> {
    let (question, items) = (question.to_owned(), items.iter().map(|item| (*item).to_owned()));
    let items: Vec<_> = items.collect();
    asked(move || Select::new().with_prompt(question).items(items).default(0).interact()).await
}

/// Waits for the answer, and gives the terminal back as it was.
async fn asked<T: Send + 'static>(
    ask: impl FnOnce() -> dialoguer::Result<T> + Send + 'static,
) -> Result<T, CliError> {
    let _restore = Restore::at_the_end();
    match tokio::task::spawn_blocking(ask).await {
        Ok(Ok(answer)) => Ok(answer),
        // Ctrl-C while a key is awaited, and the end of input.
        Ok(Err(dialoguer::Error::IO(error))) if error.kind() == io::ErrorKind::Interrupted => {
            Err(CliError::Interrupted)
        }
        Ok(Err(dialoguer::Error::IO(error))) => Err(CliError::io("cannot ask", error)),
        Err(_) => Err(CliError::Interrupted),
    }
}

fn ask(question: &str, how: &Confirmation) -> dialoguer::Result<bool> {
    match how {
        Confirmation::Yes => Confirm::new().with_prompt(question).default(false).interact(),
        Confirmation::Typed(word) => {
            let prompt = format!("{question} Type {} to confirm", visible(word));
            let typed = Input::<String>::new().with_prompt(prompt).allow_empty(true).interact_text();
            typed.map(|typed| typed.trim() == word)
        }
    }
}

/// Gives the terminal back as it was, also when the question is broken off by a signal: while a key is awaited the
/// cursor is hidden and the terminal shows nothing that is typed.
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
