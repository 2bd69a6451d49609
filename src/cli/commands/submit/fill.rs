//! `forms fill`: asks for the answers to a form, shows them, and sends them.

use clap::Args;

use crate::cli::commands::submit::{Submit, Unsent, read_sources};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::dialogue::Dialogue;
use crate::cli::output::columns::SUBMISSION;
use crate::cli::output::form_state::not_accepting;
use crate::domain::open_enum::OpenEnum;

/// Answer a form in the terminal
#[derive(Debug, Args)]
#[command(after_long_help = "\
Asks all questions, shows the answers, which can be changed, and sends them.
KEY=VALUE answers a question in advance, as in `forms submit`. Prints the
submission's id, and on stderr the same as a `forms submit` command.

Examples:
  forms fill customer-feedback
  forms fill frm_7k2m9q4x1abz email=ann@example.com")]
pub struct Fill {
    /// Form, by id or slug
    form: String,
    /// Answers that are not asked for
    #[arg(value_name = "KEY=VALUE")]
    answers: Vec<String>,
}

impl Run for Fill {
    const COLUMNS: Columns = SUBMISSION;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        if let Some(obstacle) = session.prompt_obstacle() {
            let help = "to send answers without questions: forms submit FORM KEY=VALUE ...";
            return Err(CliError::usage_with_help(format!("cannot ask questions: {obstacle}"), help));
        }
        let sources = read_sources(session, None, &self.answers).await?;
        let form = session.client().await?.get_form(&self.form).await?;
        if let Some(reason) = form.accepting_reason.as_ref().and_then(OpenEnum::known) {
            return Err(not_accepting(&form, reason, &session.command_prefix()));
        }
        let Some(dialogue) = Dialogue::of_form(session, &form) else {
            let message = "the form has a question of a type that this version does not know";
            return Err(CliError::usage_with_help(message, "use a newer version, or forms submit"));
        };
        // The store must not stay locked while asking.
        session.close().await?;
        let submit = Submit { form: self.form, ..Submit::default() };
        let (command, output) = (submit.retry_command(session), &session.output);
        let mut unsent = Unsent { command, sources, given: 0, output };
        dialogue.complete(&mut unsent.sources, "Send", "canceled, nothing was sent").await?;
        submit.send(session, &form, &unsent.sources).await?;
        let command = unsent.command_line();
        unsent.given = unsent.sources.args.len();
        command.iter().for_each(|command| output.status(&format!("the same without questions: {command}")));
        Ok(())
    }
}
