//! Questions to the person. Where nobody can answer they are refused at once, naming the flag that answers them.

use std::io::{self, IsTerminal};

use console::Term;
use dialoguer::{Confirm, Input};
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
    let refused = no_input
        || environment.get("FORMS_NO_INPUT").is_some()
        || environment.get("CI").is_some()
        || environment.get("TERM") == Some("dumb");
    !refused && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks `question`. Fails with [`CliError::Declined`] if the answer is no.
pub async fn confirm(question: String, how: Confirmation) -> Result<(), CliError> {
    let _restore = Restore::at_the_end();
    let asked = tokio::task::spawn_blocking(move || ask(&visible(&question), &how));
    match asked.await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(CliError::Declined),
        // Ctrl-C while a key is awaited, and the end of input.
        Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => Err(CliError::Interrupted),
        Ok(Err(error)) => Err(CliError::io("cannot ask", error)),
        Err(_) => Err(CliError::Interrupted),
    }
}

fn ask(question: &str, how: &Confirmation) -> io::Result<bool> {
    let answer = match how {
        Confirmation::Yes => Confirm::new().with_prompt(question).default(false).interact(),
        Confirmation::Typed(word) => {
            let prompt = format!("{question} Type {} to confirm", visible(word));
            let typed = Input::<String>::new().with_prompt(prompt).allow_empty(true).interact_text();
            typed.map(|typed| typed.trim() == word)
        }
    };
    answer.map_err(|dialoguer::Error::IO(error)| error)
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
