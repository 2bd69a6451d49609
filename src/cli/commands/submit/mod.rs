//! `forms submit`.

mod ask;

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::FormDetail;
use crate::cli::commands::{Group, Run, block_on};
use crate::cli::connection::session::Session;
use crate::cli::input::answer_args;
use crate::cli::input::answers::{self, Written};
use crate::cli::input::document;
use crate::cli::output::columns::{Columns, SUBMISSION};
use crate::cli::output::exit::CliError;
use crate::cli::output::shell_quote::quoted;
use crate::cli::output::{Format, Output, visible};
use crate::domain::form::settings::Confirmation;

/// Send answers to a form
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each answer is KEY=VALUE, the key being the question's id: `forms show FORM`
lists them. The value is everything after the first `=`, and is read by the
question's type: a number, true, false, yes or no, and for a matrix JSON; all
else is text. A list is made by giving its key several times. KEY=@FILE takes
the text from a file, @- from standard input; to begin a text with @ write
KEY=\\@text. KEY:=JSON is sent as it is. Prints the submission's id.

--file takes one record, {\"answers\": {\"q1\": \"hello\"}} or the inner map alone,
with values as the API takes them; KEY=VALUE beside it goes before what the
file has. Arguments can be seen by other users of this machine while the
command runs; what is in a file cannot. At a terminal, required answers that
are missing are asked for, unless --no-input is given.

Examples:
  forms submit frm_7k2m9q4x1abz q1=hello
  forms submit frm_7k2m9q4x1abz name=\"Ann Lee\" email=ann@example.com score=5
  forms submit frm_7k2m9q4x1abz colour=red colour=blue comment=@comment.txt
  forms submit frm_7k2m9q4x1abz 'other:={\"other\":\"purple\"}'
  forms submit frm_7k2m9q4x1abz --file answers.json
  forms submit frm_7k2m9q4x1abz --dry-run q1=hello")]
pub struct Submit {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Answers
    #[arg(value_name = "KEY=VALUE")]
    answers: Vec<String>,
    /// Answers in JSON or YAML, - for standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Check the answers, store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Submit {
    const GROUP: Group = Group::Collect;
    const SUMMARY: &'static str = "send answers";

    fn columns(&self) -> Columns {
        SUBMISSION
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Submit {
    /// Sends the answers. All that is wrong with them is told before anything is sent.
    async fn execute(self, session: &Session) -> Result<(), CliError> {
        let mut written = self.read(session)?;
        let form = session.client().await?.get_form(&self.form).await?;
        let mut unsent = Unsent { command: self.again(session), asked: Vec::new(), output: &session.output };
        if session.may_ask() && form.accepting_reason.is_none() {
            // Others may work on the store meanwhile.
            session.close().await?;
            ask::for_missing(session, &form, &mut written, &mut unsent.asked).await?;
        }
        self.send(session, &form, &written).await?;
        unsent.asked.clear();
        Ok(())
    }

    async fn send(&self, session: &Session, form: &FormDetail, written: &Written) -> Result<(), CliError> {
        let client = session.client().await?;
        let (output, again) = (&session.output, &session.again());
        let fitting = answers::fit(form, written, session.now(), again);
        // A program hears of a failure in one document alone.
        if fitting.is_ok() || output.format == Format::Table {
            answers::left_out(form, written).iter().for_each(|warning| output.warn(warning));
        }
        let body = fitting?;
        let refused = |error| answers::refused(form, written, error, again);
        if self.dry_run {
            let tried = client.create_submission(&self.form, &body, true).await.map_err(refused)?;
            output.object(&tried, || "(dry run)\n".to_owned())?;
            output.say("the answers would be taken; nothing was stored");
            return Ok(());
        }
        let made = client.create_submission(&self.form, &body, false).await.map_err(refused)?;
        output.object(&made, || format!("{}\n", made.id))?;
        output.done(&format!("submitted to \"{}\"", form.title));
        match &form.settings.confirmation {
            Some(Confirmation::Message(message)) => message.lines().for_each(|line| output.say(line)),
            Some(Confirmation::RedirectUrl(url)) => output.say(url),
            None => {}
        }
        output.say(&format!("next: {again} responses {}", visible(&self.form)));
        Ok(())
    }

    /// The command, as it was given.
    fn again(&self, session: &Session) -> String {
        let file = self.file.iter().map(|file| format!("--file {}", quoted(&file.display().to_string())));
        let given = self.answers.iter().map(|answer| quoted(answer));
        let form = quoted(&self.form);
        let words: Vec<_> = std::iter::once(form).chain(file).chain(given).collect();
        format!("{} submit {}", session.again(), words.join(" "))
    }

    fn read(&self, session: &Session) -> Result<Written, CliError> {
        let file = self.file.as_deref();
        let given = answer_args::parse(&self.answers, file.as_slice(), |key, path| {
            session.warn_of_terminal(path);
            answer_args::read_file(key, path)
        })?;
        let read = |path| {
            session.warn_of_terminal(path);
            document::record(path)
        };
        Ok(Written { given, record: file.map(read).transpose()? })
    }
}

/// Answers that a person was asked for and that are not sent yet. Dropped, they are shown in a command that sends them:
/// also if a signal ends the sending.
struct Unsent<'a> {
    command: String,
    /// As arguments.
    asked: Vec<String>,
    output: &'a Output,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if !self.asked.is_empty() {
            let (command, asked) = (&self.command, self.asked.join(" "));
            self.output.warn(&format!("to send your answers later: {command} {asked}"));
        }
    }
}
